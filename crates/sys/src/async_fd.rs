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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_pipe_is_polled_and_a_regular_file_is_refused() {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        let registered = register(reader.into(), Interest::READABLE).expect("registered");
        drop(writer);
        assert!(registered.readable().await.is_ok());
        let file = tempfile::tempfile().expect("a file");
        assert!(register(file.into(), Interest::READABLE).is_err());
    }
}
