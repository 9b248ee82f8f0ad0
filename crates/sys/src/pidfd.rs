//! Descriptors of processes (pidfd_open(2)), and waiting for the end of a process that is not
//! necessarily a child.

#[cfg(feature = "async")]
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, retry_on_intr};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// Opens the process with this pid.
///
/// # Errors
/// As pidfd_open(2): `SRCH` when there is no such process.
pub fn open(pid: u32) -> Result<OwnedFd, Errno> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pidfd_open(pid.ok_or(Errno::SRCH)?, PidfdFlags::empty())
}

/// Blocks until the process of this pidfd has ended.
///
/// # Errors
/// As poll(2).
pub fn wait_blocking(pidfd: BorrowedFd<'_>) -> Result<(), Errno> {
    let mut polled = [PollFd::from_borrowed_fd(pidfd, PollFlags::IN)];
    retry_on_intr(|| poll(&mut polled, None)).map(drop)
}

/// Blocks until the process of this pidfd has ended, a signal arrives or the time is over; whether
/// the process has ended.
#[must_use]
pub fn has_ended_within(pidfd: BorrowedFd<'_>, limit: Duration) -> bool {
    let Ok(limit) = Timespec::try_from(limit) else {
        return false;
    };
    let mut polled = [PollFd::from_borrowed_fd(pidfd, PollFlags::IN)];
    poll(&mut polled, Some(&limit)).is_ok_and(|ready| ready > 0)
}

/// Waits until the process of this pidfd has ended. Must be called within a tokio runtime.
///
/// # Errors
/// When the descriptor cannot be watched.
#[cfg(feature = "async")]
pub async fn wait(pidfd: OwnedFd) -> io::Result<()> {
    let watched = crate::async_fd::register(pidfd, tokio::io::Interest::READABLE)?;
    watched.readable().await.map(drop)
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn the_end_of_a_process_is_waited_for() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let pidfd = open(child.id()).expect("it runs");
        assert!(!has_ended_within(pidfd.as_fd(), Duration::ZERO));
        drop(child.stdin.take());
        wait_blocking(pidfd.as_fd()).expect("watched");
        assert!(has_ended_within(pidfd.as_fd(), Duration::ZERO));
        child.wait().unwrap();
        assert_eq!(open(child.id()).err(), Some(Errno::SRCH));
    }

    #[test]
    fn numbers_that_are_no_pid_are_no_process() {
        for number in [0, u32::MAX] {
            assert_eq!(open(number).err(), Some(Errno::SRCH));
        }
    }

    #[cfg(feature = "async")]
    #[tokio::test]
    async fn a_task_waits_for_the_end_of_a_process() {
        let mut child = Command::new("true").spawn().unwrap();
        wait(open(child.id()).expect("not reaped")).await.unwrap();
        assert!(child.try_wait().unwrap().is_some());
    }
}
