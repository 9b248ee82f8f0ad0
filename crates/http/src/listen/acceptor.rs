//! Accepts connections as long as they can be served. When descriptors are short, peers wait in the
//! kernel's accept queue, and are served one at a time.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use ostler_sys::{async_fd, open_files};
use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{SocketFlags, accept_with};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout, timeout_at};

use super::accept_policy::{Admission, PeerKind, decide, files_to_count};

/// How long there may be no capacity for a stdio proxy before the waiting ones are refused, in
/// milliseconds: less than their clients wait for an answer.
const PROXY_WAIT_MS: u64 = 20_000;

/// How long other connections have to release descriptors, in milliseconds, before a peer is
/// limited to a single request: a client that connects again may not have closed its first
/// connection yet.
const ROOM_WAIT_MS: u64 = 50;

/// A listening socket.
#[derive(Debug)]
pub struct Acceptor {
    listener: AsyncFd<OwnedFd>,
    peers: PeerKind,
    turns: Arc<Semaphore>,
    /// Since when no waiting peer could be accepted.
    full_since: Mutex<Option<Instant>>,
    /// Whether a warning was logged.
    warned: AtomicBool,
}

/// A connection, and the terms it was accepted on.
#[derive(Debug)]
pub struct AcceptedSocket {
    /// Close-on-exec and non-blocking.
    pub socket: OwnedFd,
    /// The terms of the connection.
    pub terms: ConnectionTerms,
}

/// What a connection is allowed.
#[derive(Debug)]
pub enum ConnectionTerms {
    /// No restrictions.
    Unrestricted(UnrestrictedPermit),
    /// One short request: others wait for it.
    SingleRequest(SingleRequestPermit),
    /// Nothing: it waited too long, and is refused.
    Refused,
}

/// Unrestricted connections; those of stdio proxies are weighted by their descriptors.
static UNRESTRICTED: AtomicU64 = AtomicU64::new(0);

/// An unrestricted connection, with its weight.
#[derive(Debug)]
pub struct UnrestrictedPermit(u64);

impl UnrestrictedPermit {
    fn new(peers: PeerKind) -> Self {
        let counts = u64::from(peers != PeerKind::StdioProxy);
        UNRESTRICTED.fetch_add(counts, Ordering::Relaxed);
        Self(counts)
    }
}

impl Drop for UnrestrictedPermit {
    fn drop(&mut self) {
        UNRESTRICTED.fetch_sub(self.0, Ordering::Relaxed);
        open_files::notify_closed();
    }
}

/// While it exists, no other connection is limited to a single request.
#[derive(Debug)]
pub struct SingleRequestPermit {
    permit: Option<OwnedSemaphorePermit>,
    reserve: Option<open_files::EmergencyFdGuard>,
}

impl SingleRequestPermit {
    fn try_acquire(peers: PeerKind, turns: &Arc<Semaphore>) -> Option<Self> {
        let permit = Arc::clone(turns).try_acquire_owned().ok()?;
        Some(Self {
            permit: Some(permit),
            reserve: (peers == PeerKind::Local).then(open_files::EmergencyFdGuard::acquire),
        })
    }
}

impl Drop for SingleRequestPermit {
    fn drop(&mut self) {
        // Before the waiters are notified.
        drop(self.permit.take());
        drop(self.reserve.take());
        open_files::notify_closed();
    }
}

impl Acceptor {
    /// For requests of this user's programs. Keeps descriptors reserved for the last of them.
    ///
    /// # Errors
    /// When the socket cannot be registered.
    pub fn local(listener: UnixListener) -> io::Result<Self> {
        open_files::refill_emergency_fds();
        Self::new(listener.into_std()?.into(), PeerKind::Local)
    }

    /// For requests over the network.
    ///
    /// # Errors
    /// As [`Acceptor::local`].
    pub fn network(listener: TcpListener) -> io::Result<Self> {
        Self::new(listener.into_std()?.into(), PeerKind::Network)
    }

    /// For stdio proxies of MCP clients.
    ///
    /// # Errors
    /// As [`Acceptor::local`].
    pub fn stdio_proxies(listener: UnixListener) -> io::Result<Self> {
        Self::new(listener.into_std()?.into(), PeerKind::StdioProxy)
    }

    fn new(listener: OwnedFd, peers: PeerKind) -> io::Result<Self> {
        Ok(Self {
            listener: async_fd::register(listener, Interest::READABLE)?,
            peers,
            turns: Arc::new(Semaphore::new(1)),
            full_since: Mutex::default(),
            warned: AtomicBool::new(false),
        })
    }

    /// Waits for the next connection, and until it can be served. Cancel safe.
    ///
    /// # Errors
    /// When the socket does not accept any more.
    pub async fn accept(&self) -> io::Result<AcceptedSocket> {
        loop {
            let mut ready = self.listener.readable().await?;
            if !has_pending_peer(self.listener.get_ref()) {
                ready.clear_ready();
                continue;
            }
            let terms = self.wait_for_terms().await;
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            match accept_with(self.listener.get_ref(), flags) {
                Ok(socket) => return Ok(AcceptedSocket { socket, terms }),
                Err(Errno::AGAIN) => ready.clear_ready(),
                Err(errno) if is_transient(errno) => {}
                Err(errno) if is_shortage(errno) => {
                    drop(terms);
                    open_files::wait_for_change().await;
                }
                Err(errno) => return Err(errno.into()),
            }
        }
    }

    /// Waits for capacity for the next peer, or for a single request.
    async fn wait_for_terms(&self) -> ConnectionTerms {
        let try_admit = || match self.decide() {
            Admission::Unrestricted => self.try_unrestricted().map(ConnectionTerms::Unrestricted),
            Admission::SingleRequest => SingleRequestPermit::try_acquire(self.peers, &self.turns)
                .map(ConnectionTerms::SingleRequest),
            Admission::Wait => None,
        };
        if let Some(room) = self.try_unrestricted() {
            *self.full_since.lock() = None;
            return ConnectionTerms::Unrestricted(room);
        }
        self.warn_once();
        let waiting = async {
            let room = || self.try_unrestricted().map(ConnectionTerms::Unrestricted);
            let first = Duration::from_millis(ROOM_WAIT_MS);
            match timeout(first, open_files::wait_for(room)).await {
                Ok(terms) => terms,
                Err(_) => open_files::wait_for(try_admit).await,
            }
        };
        if self.peers != PeerKind::StdioProxy {
            return waiting.await;
        }
        let full_since = *self.full_since.lock().get_or_insert_with(Instant::now);
        let until = full_since + Duration::from_millis(PROXY_WAIT_MS);
        match timeout_at(until, waiting).await {
            Ok(terms) => {
                *self.full_since.lock() = None;
                terms
            }
            Err(_) => ConnectionTerms::Refused,
        }
    }

    fn try_unrestricted(&self) -> Option<UnrestrictedPermit> {
        (self.decide() == Admission::Unrestricted).then(|| UnrestrictedPermit::new(self.peers))
    }

    fn decide(&self) -> Admission {
        let unrestricted = UNRESTRICTED.load(Ordering::Relaxed);
        decide(
            self.peers,
            open_files::available(files_to_count(unrestricted)),
            unrestricted,
        )
    }

    /// Logs once that peers wait.
    fn warn_once(&self) {
        if !self.warned.swap(true, Ordering::Relaxed) {
            let peers = self.peers;
            tracing::warn!(
                ?peers,
                "few descriptors are left (RLIMIT_NOFILE): served in turn"
            );
        }
    }
}

/// Whether a peer waits to be accepted: without one, there is no need to wait for descriptors.
fn has_pending_peer(listener: &OwnedFd) -> bool {
    let mut polled = [PollFd::new(listener, PollFlags::IN)];
    // An error shows up in accept(2).
    !matches!(poll(&mut polled, Some(&Timespec::default())), Ok(0))
}

/// Whether the peer left before it was accepted, or its network failed (accept(2)).
fn is_transient(errno: Errno) -> bool {
    [
        Errno::CONNABORTED,
        Errno::INTR,
        Errno::PROTO,
        Errno::NOPROTOOPT,
        Errno::OPNOTSUPP,
        Errno::PERM,
        Errno::NETDOWN,
        Errno::NETUNREACH,
        Errno::HOSTDOWN,
        Errno::HOSTUNREACH,
        Errno::NONET,
    ]
    .contains(&errno)
}

/// Whether the free descriptors were taken meanwhile, or the kernel is short of memory.
fn is_shortage(errno: Errno) -> bool {
    open_files::is_exhausted(errno) || [Errno::NOBUFS, Errno::NOMEM].contains(&errno)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_broken_socket_ends_the_listening() {
        assert!(is_transient(Errno::CONNABORTED) && !is_shortage(Errno::CONNABORTED));
        assert!(is_shortage(Errno::MFILE) && !is_transient(Errno::MFILE));
        for broken in [Errno::BADF, Errno::INVAL, Errno::NOTSOCK] {
            assert!(!is_transient(broken) && !is_shortage(broken));
        }
    }
}
