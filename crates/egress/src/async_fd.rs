//! Registration of descriptors with the async runtime.

use std::io;
use std::os::fd::OwnedFd;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Registers a descriptor with the current runtime.
///
/// # Errors
/// When the runtime's poller refuses it, as epoll_ctl(2) refuses regular files.
pub fn register(descriptor: OwnedFd, interest: Interest) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` stays open and the same until it is dropped, and nothing takes it
    // out of the `AsyncFd` before that is.
    let registered = unsafe { AsyncFd::register_with_interest(descriptor, interest) };
    registered.map_err(|error| error.into_parts().1)
}
