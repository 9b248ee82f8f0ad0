//! The daemon's connection to its zygote.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use ostler_journal::Durability;
use ostler_sys::seqpacket::{self, ReceiveMode};
use ostler_sys::{async_fd, open_files};
use parking_lot::Mutex;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::response_timeout::response_of;
use crate::proto::{ZygoteEvent, ZygoteRequest, decode, encode};
use crate::zygote::ZYGOTE_ARGUMENT;

/// How long a stopped zygote is waited for: another takes its place in a few milliseconds.
pub(super) const ZYGOTE_STOPPED: Duration = Duration::from_millis(100);
/// How long a zygote may take to end by itself, in milliseconds.
const SHUTDOWN_TIMEOUT_MS: u64 = 1_000;
/// The size of the largest message a zygote sends, in bytes.
const MESSAGE_BYTES: usize = 8 * 1024;

/// One zygote process.
#[derive(Debug)]
pub(super) struct ZygoteClient {
    socket: AsyncFd<OwnedFd>,
    child: Mutex<Child>,
    /// The pid of the child, for what is read in proc(5).
    pub(super) pid: i32,
    /// When it last sent a message.
    last_message: Mutex<Instant>,
    /// Cancelled once it is dead.
    pub(super) dead: CancellationToken,
}

impl ZygoteClient {
    /// Starts an executable as the zygote: its descriptor 0 is the socket, its descriptor 1 the
    /// directory of executions. It inherits nothing of our environment. Its limit on open files is
    /// restored to the original by the time a shim is requested.
    pub(super) fn start(executable: &Path, executions: BorrowedFd<'_>) -> io::Result<Self> {
        let (ours, theirs) = seqpacket::pair()?;
        let child = Command::new(executable)
            .arg(ZYGOTE_ARGUMENT)
            .env_clear()
            .stdin(Stdio::from(theirs))
            .stdout(Stdio::from(executions.try_clone_to_owned()?))
            .stderr(Stdio::null())
            .spawn()?;
        let pid = Pid::from_child(&child);
        open_files::restore_limit(pid);
        Ok(Self {
            socket: async_fd::register(ours, Interest::READABLE | Interest::WRITABLE)?,
            child: Mutex::new(child),
            pid: pid.as_raw_nonzero().get(),
            last_message: Mutex::new(Instant::now()),
            dead: CancellationToken::new(),
        })
    }

    /// Requests shims; false when the zygote reads no requests any more.
    pub(super) async fn request_shims(&self, count: u32, durability: Durability) -> bool {
        let request = match durability {
            Durability::PageCache => ZygoteRequest::Fork { count },
            Durability::Fsync => ZygoteRequest::ForkDurable { count },
        };
        let Ok(bytes) = encode(&request) else {
            return false;
        };
        let request = async {
            loop {
                match seqpacket::send(self.socket.get_ref().as_fd(), &bytes, None) {
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
        response_of(
            self.pid,
            ZYGOTE_STOPPED,
            || self.silence(),
            Box::pin(request),
        )
        .await
        .unwrap_or(false)
    }

    /// How long ago it last sent a message.
    pub(super) fn silence(&self) -> Duration {
        self.last_message.lock().elapsed()
    }

    /// Receives one message; none when the zygote is gone.
    pub(super) async fn receive(&self) -> Option<(ZygoteEvent, Option<OwnedFd>)> {
        let mut buffer = vec![0; MESSAGE_BYTES];
        loop {
            match seqpacket::receive(self.socket.get_ref(), &mut buffer, ReceiveMode::NonBlocking) {
                Ok(packet) if packet.len == 0 => return None,
                Ok(packet) => match decode(&buffer[..packet.len]) {
                    Ok(message) => {
                        *self.last_message.lock() = Instant::now();
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

    /// Kills it; a zygote that does not answer may be stopped, and would never end.
    pub(super) fn kill(&self) {
        // Not reaped yet, so its pid is not reused.
        let _gone = self.child.lock().kill();
    }

    /// Closes the connection, after which it exits.
    pub(super) fn shutdown(&self) {
        let _gone = rustix::net::shutdown(self.socket.get_ref(), rustix::net::Shutdown::Both);
    }

    /// Waits for its exit, kills it after a timeout, and reaps it.
    pub(super) async fn wait_exit(&self) {
        let limit = Duration::from_millis(SHUTDOWN_TIMEOUT_MS);
        match self.exit_fd() {
            Ok(end) => {
                if timeout(limit, end.readable()).await.is_err() {
                    self.kill();
                    let _ended = end.readable().await;
                }
            }
            // No descriptor is left to wait on.
            Err(_) => self.kill(),
        }
        let _status = self.child.lock().wait();
        self.dead.cancel();
    }

    /// A pidfd that is readable once it has ended; opened for that only.
    fn exit_fd(&self) -> io::Result<AsyncFd<OwnedFd>> {
        let pid = Pid::from_child(&self.child.lock());
        async_fd::register(pidfd_open(pid, PidfdFlags::empty())?, Interest::READABLE)
    }
}
