//! Waits for a daemon that another process started: for its socket, or for its exit.

use std::ffi::OsString;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use ostler_sys::pidfd;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};

/// Milliseconds between two checks while a process cannot be watched: it took a lock and has not
/// written its pid yet, or has exited.
const UNKNOWN_MS: u64 = 50;
/// The size of the buffer for events in bytes.
const EVENT_BYTES: usize = 4 * 1024;

/// Why a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SocketChange {
    /// The socket was created, or the process exited or does not exist: check again.
    Changed,
    /// The timeout expired.
    TimedOut,
}

/// A watch of the directory of a socket.
#[derive(Debug)]
pub(super) struct SocketWatch {
    inotify: OwnedFd,
    name: OsString,
}

impl SocketWatch {
    /// Starts watching.
    ///
    /// # Errors
    /// Those of inotify(7).
    pub(super) fn new(socket: &Path) -> io::Result<Self> {
        let inotify = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        // The mode of a socket is set once it listens, which is when it can be connected to.
        let flags = WatchFlags::CREATE | WatchFlags::MOVED_TO | WatchFlags::ATTRIB;
        inotify::add_watch(&inotify, socket.parent().unwrap_or(Path::new("/")), flags)?;
        let name = socket.file_name().unwrap_or_default().to_owned();
        Ok(Self { inotify, name })
    }

    /// Waits until the socket appears or changes, or the process with this pid exits.
    ///
    /// # Errors
    /// Those of poll(2) and inotify(7).
    pub(super) fn wait(&self, pid: Option<u32>, deadline: Instant) -> io::Result<SocketChange> {
        let process = pid.and_then(|pid| pidfd::open(pid).ok());
        let poll_deadline = Instant::now() + Duration::from_millis(UNKNOWN_MS);
        let until = if process.is_some() {
            deadline
        } else {
            deadline.min(poll_deadline)
        };
        loop {
            let remaining = until.saturating_duration_since(Instant::now());
            let timeout = Timespec::try_from(remaining).map_err(io::Error::other)?;
            let mut fds = vec![PollFd::new(&self.inotify, PollFlags::IN)];
            fds.extend(process.as_ref().map(|it| PollFd::new(it, PollFlags::IN)));
            if rustix::io::retry_on_intr(|| poll(&mut fds, Some(&timeout)))? == 0 {
                return Ok(if Instant::now() < deadline {
                    SocketChange::Changed
                } else {
                    SocketChange::TimedOut
                });
            }
            let ended = fds.get(1).is_some_and(|it| !it.revents().is_empty());
            if ended || self.has_appeared()? {
                return Ok(SocketChange::Changed);
            }
        }
    }

    /// Whether one of the pending events concerns the socket.
    fn has_appeared(&self) -> io::Result<bool> {
        let mut buffer = [MaybeUninit::uninit(); EVENT_BYTES];
        let mut events = inotify::Reader::new(self.inotify.as_fd(), &mut buffer);
        let mut appeared = false;
        loop {
            match events.next() {
                Ok(event) => {
                    let name = event.file_name().map(std::ffi::CStr::to_bytes);
                    appeared |= name == Some(self.name.as_encoded_bytes());
                }
                Err(rustix::io::Errno::AGAIN) => return Ok(appeared),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_and_an_end_are_noticed_and_other_files_are_not() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("s.sock");
        let soon = || Instant::now() + Duration::from_millis(200);
        let late = || Instant::now() + Duration::from_secs(30);
        let own = Some(std::process::id());
        let watch = SocketWatch::new(&path).unwrap();
        std::fs::write(root.path().join("other"), b"").unwrap();
        assert_eq!(watch.wait(own, soon()).unwrap(), SocketChange::TimedOut);
        let _listener = crate::unix_socket::bind(&path).unwrap();
        assert_eq!(watch.wait(own, late()).unwrap(), SocketChange::Changed);

        let watch = SocketWatch::new(&path).unwrap();
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let ended = watch.wait(Some(child.id()), late()).unwrap();
        assert_eq!(ended, SocketChange::Changed);
        child.wait().unwrap();
        let gone = watch.wait(Some(child.id()), late()).unwrap();
        assert_eq!(gone, SocketChange::Changed, "there is no such process");
    }
}
