//! Waits for the end of a process that is not one of our executions.

use std::io;
use std::os::fd::OwnedFd;

use tokio::io::Interest;

use crate::sys::async_fd;

/// Waits until the process of this pidfd has ended. Must be called within a tokio runtime.
///
/// # Errors
/// When the descriptor cannot be watched.
pub async fn wait_exit(pidfd: OwnedFd) -> io::Result<()> {
    let watched = async_fd::register(pidfd, Interest::READABLE)?;
    watched.readable().await.map(drop)
}
