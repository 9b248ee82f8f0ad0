//! Waits for a daemon that somebody else started: for its socket, or for its end.

use std::ffi::OsString;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// How long to wait for a process that cannot be watched before everything is looked at again,
/// in milliseconds: it took a lock and has not written its pid yet, or has ended.
const UNKNOWN_MS: u64 = 50;
/// Bytes of events read at once.
const EVENT_BYTES: usize = 4 * 1024;

/// What a wait ended with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    /// The socket was made, or the process ended, or there is no such process: look again.
    Something,
    /// The time is over.
    Nothing,
}

/// A watch on the directory of a socket.
#[derive(Debug)]
pub(super) struct SocketWatch {
    inotify: OwnedFd,
    name: OsString,
}

impl SocketWatch {
    /// Watches from now on.
    ///
    /// # Errors
    /// As inotify(7).
    pub(super) fn new(socket: &Path) -> io::Result<Self> {
        let inotify = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        // Its mode is set once it listens, which is what can be connected to.
        let flags = WatchFlags::CREATE | WatchFlags::MOVED_TO | WatchFlags::ATTRIB;
        inotify::add_watch(&inotify, socket.parent().unwrap_or(Path::new("/")), flags)?;
        let name = socket.file_name().unwrap_or_default().to_owned();
        Ok(Self { inotify, name })
    }

    /// Waits until the socket appears or changes, or the process with this pid ends.
    ///
    /// # Errors
    /// As poll(2) and inotify(7).
    pub(super) fn wait(&self, pid: Option<u32>, deadline: Instant) -> io::Result<Change> {
        let process = pid.and_then(open);
        let unknown = Instant::now() + Duration::from_millis(UNKNOWN_MS);
        let until = if process.is_some() {
            deadline
        } else {
            deadline.min(unknown)
        };
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let timeout = Timespec::try_from(left).map_err(io::Error::other)?;
            let mut fds = vec![PollFd::new(&self.inotify, PollFlags::IN)];
            fds.extend(process.as_ref().map(|it| PollFd::new(it, PollFlags::IN)));
            if rustix::io::retry_on_intr(|| poll(&mut fds, Some(&timeout)))? == 0 {
                return Ok(if Instant::now() < deadline {
                    Change::Something
                } else {
                    Change::Nothing
                });
            }
            let ended = fds.get(1).is_some_and(|it| !it.revents().is_empty());
            if ended || self.appeared()? {
                return Ok(Change::Something);
            }
        }
    }

    /// Whether one of the events that came is about the socket.
    fn appeared(&self) -> io::Result<bool> {
        let mut buffer = [MaybeUninit::uninit(); EVENT_BYTES];
        let mut events = inotify::Reader::new(self.inotify.as_fd(), &mut buffer);
        let mut found = false;
        loop {
            match events.next() {
                Ok(event) => {
                    let name = event.file_name().map(std::ffi::CStr::to_bytes);
                    found |= name == Some(self.name.as_encoded_bytes());
                }
                Err(rustix::io::Errno::AGAIN) => return Ok(found),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

fn open(pid: u32) -> Option<OwnedFd> {
    let pid = Pid::from_raw(i32::try_from(pid).ok()?)?;
    pidfd_open(pid, PidfdFlags::empty()).ok()
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
        assert_eq!(watch.wait(own, soon()).unwrap(), Change::Nothing);
        let _listener = crate::socket::bind(&path).unwrap();
        assert_eq!(watch.wait(own, late()).unwrap(), Change::Something);

        let watch = SocketWatch::new(&path).unwrap();
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let ended = watch.wait(Some(child.id()), late()).unwrap();
        assert_eq!(ended, Change::Something);
        child.wait().unwrap();
        let gone = watch.wait(Some(child.id()), late()).unwrap();
        assert_eq!(gone, Change::Something, "there is no such process");
    }
}
