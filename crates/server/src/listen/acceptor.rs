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

use super::turn::{Admission, Peers, decide, enough};

/// How long there may be no room for a front before those that wait are told so, in milliseconds:
/// less than their clients wait for an answer.
const FRONT_WAIT_MS: u64 = 20_000;

/// How long others have to give up what they need not keep, in milliseconds, before somebody is
/// served in turn: who asks twice has not closed the first connection yet.
const ROOM_FIRST_MS: u64 = 50;

/// A listening socket.
#[derive(Debug)]
pub struct Acceptor {
    listener: AsyncFd<OwnedFd>,
    peers: Peers,
    turns: Arc<Semaphore>,
    /// Since when nobody could be accepted, as far as anybody came.
    full_since: Mutex<Option<Instant>>,
    /// Whether the log says so.
    told: AtomicBool,
}

/// A connection, and the terms it was accepted on.
#[derive(Debug)]
pub struct Accepted {
    /// Close-on-exec and non-blocking.
    pub socket: OwnedFd,
    /// What may be done on it.
    pub terms: Terms,
}

/// What a connection may do.
#[derive(Debug)]
pub enum Terms {
    /// Anything.
    Room(Roomy),
    /// One request that does not last: others wait for it.
    InTurn(Turn),
    /// Nothing: it waited long enough, and is to be told so.
    Refused,
}

/// Connections with room; those of fronts are counted by what they take.
static ROOMY: AtomicU64 = AtomicU64::new(0);

/// A connection with room.
#[derive(Debug)]
pub struct Roomy(u64);

impl Roomy {
    fn new(peers: Peers) -> Self {
        let counts = u64::from(peers != Peers::Front);
        ROOMY.fetch_add(counts, Ordering::Relaxed);
        Self(counts)
    }
}

impl Drop for Roomy {
    fn drop(&mut self) {
        ROOMY.fetch_sub(self.0, Ordering::Relaxed);
        open_files::closed();
    }
}

/// Nobody else is served in turn while this lives.
#[derive(Debug)]
pub struct Turn {
    permit: Option<OwnedSemaphorePermit>,
    lent: Option<open_files::Lent>,
}

impl Turn {
    fn take(peers: Peers, turns: &Arc<Semaphore>) -> Option<Self> {
        let permit = Arc::clone(turns).try_acquire_owned().ok()?;
        Some(Self {
            permit: Some(permit),
            lent: (peers == Peers::Local).then(open_files::Lent::take),
        })
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        // Before those who wait are told.
        drop(self.permit.take());
        drop(self.lent.take());
        open_files::closed();
    }
}

impl Acceptor {
    /// Requests of this user's programs. Holds back what the last of them needs.
    ///
    /// # Errors
    /// When the socket cannot be registered.
    pub fn local(listener: UnixListener) -> io::Result<Self> {
        open_files::hold_back();
        Self::new(listener.into_std()?.into(), Peers::Local)
    }

    /// Requests of others.
    ///
    /// # Errors
    /// As [`Acceptor::local`].
    pub fn network(listener: TcpListener) -> io::Result<Self> {
        Self::new(listener.into_std()?.into(), Peers::Network)
    }

    /// Fronts of MCP clients.
    ///
    /// # Errors
    /// As [`Acceptor::local`].
    pub fn fronts(listener: UnixListener) -> io::Result<Self> {
        Self::new(listener.into_std()?.into(), Peers::Front)
    }

    fn new(listener: OwnedFd, peers: Peers) -> io::Result<Self> {
        Ok(Self {
            listener: register_descriptor(listener, Interest::READABLE)?,
            peers,
            turns: Arc::new(Semaphore::new(1)),
            full_since: Mutex::default(),
            told: AtomicBool::new(false),
        })
    }

    /// Waits for the next connection, and until it can be served. Cancel safe.
    ///
    /// # Errors
    /// When the socket does not accept any more.
    pub async fn accept(&self) -> io::Result<Accepted> {
        loop {
            let mut ready = self.listener.readable().await?;
            if !is_waited_for(self.listener.get_ref()) {
                ready.clear_ready();
                continue;
            }
            let terms = self.terms().await;
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            match accept_with(self.listener.get_ref(), flags) {
                Ok(socket) => return Ok(Accepted { socket, terms }),
                Err(Errno::AGAIN) => ready.clear_ready(),
                Err(errno) if is_passing(errno) => {}
                Err(errno) if is_shortage(errno) => {
                    drop(terms);
                    open_files::changed().await;
                }
                Err(errno) => return Err(errno.into()),
            }
        }
    }

    /// Waits until there is room for whoever comes next, or a turn.
    async fn terms(&self) -> Terms {
        let look = || match self.decide() {
            Admission::Room => self.room().map(Terms::Room),
            Admission::InTurn => Turn::take(self.peers, &self.turns).map(Terms::InTurn),
            Admission::Wait => None,
        };
        if let Some(room) = self.room() {
            *self.full_since() = None;
            return Terms::Room(room);
        }
        self.tell();
        let terms = async {
            let room = || self.room().map(Terms::Room);
            let first = Duration::from_millis(ROOM_FIRST_MS);
            match timeout(first, open_files::wait_for(room)).await {
                Ok(terms) => terms,
                Err(_) => open_files::wait_for(look).await,
            }
        };
        if self.peers != Peers::Front {
            return terms.await;
        }
        let since = *self.full_since().get_or_insert_with(Instant::now);
        let until = since + Duration::from_millis(FRONT_WAIT_MS);
        match timeout_at(until, terms).await {
            Ok(terms) => {
                *self.full_since() = None;
                terms
            }
            Err(_) => Terms::Refused,
        }
    }

    fn room(&self) -> Option<Roomy> {
        (self.decide() == Admission::Room).then(|| Roomy::new(self.peers))
    }

    fn decide(&self) -> Admission {
        let roomy = ROOMY.load(Ordering::Relaxed);
        decide(self.peers, open_files::available(enough(roomy)), roomy)
    }

    /// Says once that peers wait.
    fn tell(&self) {
        if !self.told.swap(true, Ordering::Relaxed) {
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
fn is_waited_for(listener: &OwnedFd) -> bool {
    let mut polled = [PollFd::new(listener, PollFlags::IN)];
    // What cannot be told shows when it is accepted.
    !matches!(poll(&mut polled, Some(&Timespec::default())), Ok(0))
}

/// Whether the peer left before it was accepted, or its network did (accept(2)).
fn is_passing(errno: Errno) -> bool {
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
        assert!(is_passing(Errno::CONNABORTED) && !is_shortage(Errno::CONNABORTED));
        assert!(is_shortage(Errno::MFILE) && !is_passing(Errno::MFILE));
        for broken in [Errno::BADF, Errno::INVAL, Errno::NOTSOCK] {
            assert!(!is_passing(broken) && !is_shortage(broken));
        }
    }
}
