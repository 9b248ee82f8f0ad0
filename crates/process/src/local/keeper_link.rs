//! The daemon's line to its keeper.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::keeper::KEEPER_ARGUMENT;
use crate::open_files;
use crate::proto::{FromKeeper, ToKeeper, decode, encode};
use crate::sys::packet::{self, Patience};
use crate::sys::reactor;

/// How long a keeper may leave requests unread, in milliseconds.
const ASK_MS: u64 = 100;
/// How long a keeper may take to end by itself, in milliseconds.
const FAREWELL_MS: u64 = 1_000;
/// Bytes of the largest message a keeper sends.
const MESSAGE_BYTES: usize = 8 * 1024;

/// One keeper, from its start to its death.
#[derive(Debug)]
pub(super) struct KeeperLink {
    socket: AsyncFd<OwnedFd>,
    child: Mutex<Child>,
    /// When it last said something.
    heard: Mutex<Instant>,
    /// Cancelled once it is dead.
    pub(super) dead: CancellationToken,
}

impl KeeperLink {
    /// Starts an executable as the keeper: its descriptor 0 is the socket, its descriptor 1
    /// the directory of executions. Nothing of our environment goes along. It has the limit on
    /// open files that commands get back by the time it is asked for a shim.
    pub(super) fn start(executable: &Path, executions: BorrowedFd<'_>) -> io::Result<Self> {
        let (ours, theirs) = packet::pair()?;
        let child = Command::new(executable)
            .arg(KEEPER_ARGUMENT)
            .env_clear()
            .stdin(Stdio::from(theirs))
            .stdout(Stdio::from(executions.try_clone_to_owned()?))
            .stderr(Stdio::null())
            .spawn()?;
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        pid.into_iter().for_each(open_files::give_back);
        Ok(Self {
            socket: reactor::register(ours, Interest::READABLE | Interest::WRITABLE)?,
            child: Mutex::new(child),
            heard: Mutex::new(Instant::now()),
            dead: CancellationToken::new(),
        })
    }

    /// Asks for shims; false when the keeper takes no requests within [`ASK_MS`].
    pub(super) async fn ask(&self, count: u32) -> bool {
        let Ok(bytes) = encode(&ToKeeper::Fork { count }) else {
            return false;
        };
        let asked = async {
            loop {
                match packet::send(self.socket.get_ref().as_fd(), &bytes, None) {
                    Ok(()) => return true,
                    Err(Errno::AGAIN) => {}
                    Err(_) => return false,
                }
                match self.socket.writable().await {
                    Ok(mut guard) => guard.clear_ready(),
                    Err(_) => return false,
                }
            }
        };
        timeout(Duration::from_millis(ASK_MS), asked)
            .await
            .unwrap_or(false)
    }

    /// How long it has been silent.
    pub(super) fn silence(&self) -> Duration {
        self.heard
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .elapsed()
    }

    /// Takes in one message; none when the keeper is gone.
    pub(super) async fn receive(&self) -> Option<(FromKeeper, Option<OwnedFd>)> {
        let mut buffer = vec![0; MESSAGE_BYTES];
        loop {
            match packet::receive(self.socket.get_ref(), &mut buffer, Patience::Now) {
                Ok(packet) if packet.len == 0 => return None,
                Ok(packet) => match decode(&buffer[..packet.len]) {
                    Ok(message) => {
                        *self.heard.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
                        return Some((message, packet.descriptor));
                    }
                    Err(_) => continue,
                },
                Err(Errno::AGAIN) => {}
                Err(_) => return None,
            }
            self.socket.readable().await.ok()?.clear_ready();
        }
    }

    /// Kills it; a keeper that does not answer may be stopped, and would never end.
    pub(super) fn kill(&self) {
        // Not reaped yet, so its pid is its own.
        let _gone = self.child().kill();
    }

    /// Lets it end by itself.
    pub(super) fn shut(&self) {
        let _gone = rustix::net::shutdown(self.socket.get_ref(), rustix::net::Shutdown::Both);
    }

    /// Waits for its end, which is forced where it does not come by itself, and reaps it.
    pub(super) async fn bury(&self) {
        let limit = Duration::from_millis(FAREWELL_MS);
        match self.end() {
            Ok(end) => {
                if timeout(limit, end.readable()).await.is_err() {
                    self.kill();
                    let _ended = end.readable().await;
                }
            }
            // Without a descriptor to wait by.
            Err(_) => self.kill(),
        }
        let _status = self.child().wait();
        self.dead.cancel();
    }

    /// A descriptor that is readable once it has ended; opened for that only.
    fn end(&self) -> io::Result<AsyncFd<OwnedFd>> {
        let pid = Pid::from_child(&self.child());
        reactor::register(pidfd_open(pid, PidfdFlags::empty())?, Interest::READABLE)
    }

    fn child(&self) -> MutexGuard<'_, Child> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
