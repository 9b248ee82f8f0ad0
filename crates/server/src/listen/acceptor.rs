//! Accepts connections as long as they can be served. Where descriptors are short, peers wait in
//! the kernel's queue, and are served in turn.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ostler_engine::{open_files, register_descriptor};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{SocketFlags, accept_with};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout, timeout_at};

use super::accept_policy::{Admission, PeerKind, decide, files_to_count};

/// How long there may be no room for a front before those that wait are told so, in milliseconds:
/// less than their clients wait for an answer.
const PROXY_WAIT_MS: u64 = 20_000;

/// How long others have to give up what they need not keep, in milliseconds, before somebody is
/// served in turn: who asks twice has not closed the first connection yet.
const ROOM_WAIT_MS: u64 = 50;

/// A listening socket.
#[derive(Debug)]
pub struct Acceptor {
    listener: AsyncFd<OwnedFd>,
    peers: PeerKind,
    turns: Arc<Semaphore>,
    /// Since when nobody could be accepted, as far as anybody came.
    full_since: Mutex<Option<Instant>>,
    /// Whether the log says so.
    warned: AtomicBool,
}

/// A connection, and the terms it was accepted on.
#[derive(Debug)]
pub struct AcceptedSocket {
    /// Close-on-exec and non-blocking.
    pub socket: OwnedFd,
    /// What may be done on it.
    pub terms: ConnectionTerms,
}

/// What a connection may do.
#[derive(Debug)]
pub enum ConnectionTerms {
    /// Anything.
    Unrestricted(UnrestrictedPermit),
    /// One request that does not last: others wait for it.
    SingleRequest(SingleRequestPermit),
    /// Nothing: it waited long enough, and is to be told so.
    Refused,
}

/// Connections with room; those of fronts are counted by what they take.
static UNRESTRICTED: AtomicU64 = AtomicU64::new(0);

/// A connection with room.
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

/// Nobody else is served in turn while this lives.
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
        // Before those who wait are told.
        drop(self.permit.take());
        drop(self.reserve.take());
        open_files::notify_closed();
    }
}

impl Acceptor {
    /// Requests of this user's programs. Holds back what the last of them needs.
    ///
    /// # Errors
    /// When the socket cannot be registered.
    pub fn local(listener: UnixListener) -> io::Result<Self> {
        open_files::refill_emergency_fds();
        Self::new(listener.into_std()?.into(), PeerKind::Local)
    }

    /// Requests of others.
    ///
    /// # Errors
    /// As [`Acceptor::local`].
    pub fn network(listener: TcpListener) -> io::Result<Self> {
        Self::new(listener.into_std()?.into(), PeerKind::Network)
    }

    /// Fronts of MCP clients.
    ///
    /// # Errors
    /// As [`Acceptor::local`].
    pub fn stdio_proxies(listener: UnixListener) -> io::Result<Self> {
        Self::new(listener.into_std()?.into(), PeerKind::StdioProxy)
    }

    fn new(listener: OwnedFd, peers: PeerKind) -> io::Result<Self> {
        Ok(Self {
            listener: register_descriptor(listener, Interest::READABLE)?,
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

    /// Waits until there is room for whoever comes next, or a turn.
    async fn wait_for_terms(&self) -> ConnectionTerms {
        let try_admit = || match self.decide() {
            Admission::Unrestricted => self.try_unrestricted().map(ConnectionTerms::Unrestricted),
            Admission::SingleRequest => SingleRequestPermit::try_acquire(self.peers, &self.turns)
                .map(ConnectionTerms::SingleRequest),
            Admission::Wait => None,
        };
        if let Some(room) = self.try_unrestricted() {
            *self.full_since() = None;
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
        let full_since = *self.full_since().get_or_insert_with(Instant::now);
        let until = full_since + Duration::from_millis(PROXY_WAIT_MS);
        match timeout_at(until, waiting).await {
            Ok(terms) => {
                *self.full_since() = None;
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

    /// Says once that peers wait.
    fn warn_once(&self) {
        if !self.warned.swap(true, Ordering::Relaxed) {
            let peers = self.peers;
            tracing::warn!(
                ?peers,
                "few descriptors are left (RLIMIT_NOFILE): served in turn"
            );
        }
    }

    fn full_since(&self) -> MutexGuard<'_, Option<Instant>> {
        self.full_since
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a peer waits to be accepted: for nobody, no descriptor is waited for.
fn has_pending_peer(listener: &OwnedFd) -> bool {
    let mut polled = [PollFd::new(listener, PollFlags::IN)];
    // What cannot be told shows when it is accepted.
    !matches!(poll(&mut polled, Some(&Timespec::default())), Ok(0))
}

/// Whether the peer left before it was accepted, or its network did (accept(2)).
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

/// Whether somebody else took what was free, or the kernel lacks memory for a moment.
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
