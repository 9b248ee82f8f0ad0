//! The shim's line to a daemon: the socket it was born with, or, once that daemon is gone,
//! `ctl.sock` in the execution's directory, where the next one calls.

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::renameat;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind};
use rustix::net::{listen, socket_with, sockopt};

use super::record::{self, CONTROL_SOCKET};
use crate::proto::{FromShim, ToShim, decode, encode};
use crate::sys::packet::{self, PACKET_BYTES, Patience};

/// Messages that wait for a daemon that does not read; beyond that, questions of programs are
/// dropped. Of marks of the output's end only the last one waits, and everything else is said
/// once, or once for each order.
const WAITING_MAX: usize = 256;
/// How long a last message may wait for a daemon that does not read, in milliseconds.
const FAREWELL_MS: i64 = 2_000;
/// The control socket's name before it listens.
const UNFINISHED_SOCKET: &str = "ctl.tmp";
/// Daemons that may knock at once.
const BACKLOG: i32 = 4;

/// Who can be talked to.
#[derive(Debug)]
enum Peer {
    /// A daemon.
    Daemon(OwnedFd),
    /// Nobody yet; somebody may call.
    Listening(OwnedFd),
    /// Nobody, and no way to be called.
    Nobody,
}

/// What came in.
#[derive(Debug)]
pub(crate) enum Incoming {
    /// A message.
    Message(ToShim, Option<OwnedFd>),
    /// Nothing now.
    Nothing,
    /// A message of another version, or none at all.
    Garbled,
    /// The daemon is gone.
    Hangup,
    /// A new daemon called.
    Called,
}

/// The line.
#[derive(Debug)]
pub(crate) struct Link {
    peer: Peer,
    waiting: Waiting,
}

/// Messages that wait for a daemon that does not read, in order.
#[derive(Debug)]
struct Waiting(VecDeque<Packet>);

#[derive(Debug)]
struct Packet {
    bytes: Vec<u8>,
    descriptor: Option<OwnedFd>,
    /// It says where the output ends: a later one says more.
    is_mark: bool,
}

impl Waiting {
    /// Adds a message. A mark takes the place of the one before it.
    fn push(&mut self, message: &FromShim, descriptor: Option<OwnedFd>) {
        let is_question = matches!(message, FromShim::Asked { .. });
        if is_question && self.0.len() >= WAITING_MAX {
            return;
        }
        let Ok(bytes) = encode(message) else {
            return;
        };
        let is_mark = matches!(message, FromShim::Output { .. });
        if is_mark && self.0.back().is_some_and(|last| last.is_mark) {
            self.0.pop_back();
        }
        self.0.push_back(Packet {
            bytes,
            descriptor,
            is_mark,
        });
    }
}

impl Link {
    /// A line to the daemon at the other end of `socket`.
    pub(crate) const fn new(socket: OwnedFd) -> Self {
        Self {
            peer: Peer::Daemon(socket),
            waiting: Waiting(VecDeque::new()),
        }
    }

    /// What to poll, if anything.
    pub(crate) fn poll_fd(&self) -> Option<PollFd<'_>> {
        match &self.peer {
            Peer::Daemon(socket) if self.waiting.0.is_empty() => {
                Some(PollFd::new(socket, PollFlags::IN))
            }
            Peer::Daemon(socket) => Some(PollFd::new(socket, PollFlags::IN | PollFlags::OUT)),
            Peer::Listening(listener) => Some(PollFd::new(listener, PollFlags::IN)),
            Peer::Nobody => None,
        }
    }

    /// Whether a message comes in so long, or the daemon goes.
    pub(crate) fn has_news_within(&self, limit: Duration) -> bool {
        let Some(mut polled) = self.poll_fd().map(|polled| [polled]) else {
            return true;
        };
        let limit = Timespec::try_from(limit).unwrap_or_default();
        rustix::event::poll(&mut polled, Some(&limit)) != Ok(0)
    }

    /// Whether a daemon is there.
    pub(crate) const fn has_daemon(&self) -> bool {
        matches!(self.peer, Peer::Daemon(_))
    }

    /// Sends, or keeps for when the daemon reads again.
    pub(crate) fn send(&mut self, message: &FromShim, descriptor: Option<OwnedFd>) {
        if !self.has_daemon() {
            return;
        }
        self.waiting.push(message, descriptor);
        self.flush();
    }

    /// Sends what waits, as far as the daemon takes it.
    pub(crate) fn flush(&mut self) {
        let Peer::Daemon(socket) = &self.peer else {
            self.waiting.0.clear();
            return;
        };
        while let Some(first) = self.waiting.0.front() {
            let descriptor = first.descriptor.as_ref().map(AsFd::as_fd);
            match packet::send(socket.as_fd(), &first.bytes, descriptor) {
                Err(Errno::AGAIN) => return,
                // Gone daemons show themselves by the end of what they send.
                Ok(()) | Err(_) => drop(self.waiting.0.pop_front()),
            }
        }
    }

    /// Waits until everything was taken, or the daemon proves not to read.
    pub(crate) fn farewell(&mut self) {
        let limit = rustix::event::Timespec {
            tv_sec: FAREWELL_MS / 1_000,
            tv_nsec: 0,
        };
        while !self.waiting.0.is_empty() {
            let Peer::Daemon(socket) = &self.peer else {
                return;
            };
            let mut poll = [PollFd::new(socket, PollFlags::OUT)];
            if !matches!(rustix::event::poll(&mut poll, Some(&limit)), Ok(1..)) {
                return;
            }
            self.flush();
        }
    }

    /// Takes one message, or one caller.
    pub(crate) fn receive(&mut self, buffer: &mut [u8], patience: Patience) -> Incoming {
        match &self.peer {
            Peer::Daemon(socket) => {
                let buffer = &mut buffer[..PACKET_BYTES];
                match packet::receive(socket, buffer, patience) {
                    Err(Errno::AGAIN) => Incoming::Nothing,
                    Err(_) => self.hang_up(),
                    Ok(packet) if packet.len == 0 => self.hang_up(),
                    Ok(packet) => match decode(&buffer[..packet.len]) {
                        Ok(message) => Incoming::Message(message, packet.descriptor),
                        Err(_) => Incoming::Garbled,
                    },
                }
            }
            Peer::Listening(_) => self.accept(),
            Peer::Nobody => Incoming::Nothing,
        }
    }

    fn hang_up(&mut self) -> Incoming {
        self.peer = Peer::Nobody;
        self.waiting.0.clear();
        Incoming::Hangup
    }

    /// Opens `ctl.sock` in `dir` for the next daemon. The path goes through the directory's
    /// descriptor, so that it fits into an address however long it is.
    /// Whether it is open.
    pub(crate) fn listen(&mut self, dir: BorrowedFd<'_>) -> bool {
        record::remove(dir, UNFINISHED_SOCKET);
        match open_listener(dir) {
            Ok(listener) => self.peer = Peer::Listening(listener),
            Err(_) => return false,
        }
        true
    }

    fn accept(&mut self) -> Incoming {
        let Peer::Listening(listener) = &self.peer else {
            return Incoming::Nothing;
        };
        let Ok(caller) = accept_with(listener, SocketFlags::CLOEXEC) else {
            return Incoming::Nothing;
        };
        if !is_same_user(caller.as_fd()) {
            return Incoming::Nothing;
        }
        self.peer = Peer::Daemon(caller);
        Incoming::Called
    }
}

fn open_listener(dir: BorrowedFd<'_>) -> Result<OwnedFd, Errno> {
    let listener = socket_with(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
        None,
    )?;
    // Under its name it always answers: whoever sees it can connect.
    bind(&listener, &control_address(dir, UNFINISHED_SOCKET)?)?;
    listen(&listener, BACKLOG)?;
    renameat(dir, UNFINISHED_SOCKET, dir, CONTROL_SOCKET)?;
    Ok(listener)
}

/// The address of a socket in `dir`, for this process.
pub(crate) fn control_address(dir: BorrowedFd<'_>, name: &str) -> Result<SocketAddrUnix, Errno> {
    use std::os::fd::AsRawFd;
    SocketAddrUnix::new(format!("/proc/self/fd/{}/{name}", dir.as_raw_fd()))
}

/// Whether the peer runs as our user, or as root.
pub(crate) fn is_same_user(socket: BorrowedFd<'_>) -> bool {
    sockopt::socket_peercred(socket)
        .is_ok_and(|peer| peer.uid.is_root() || peer.uid == rustix::process::geteuid())
}

#[cfg(test)]
mod tests {
    use rustix::net::socketpair;

    use super::*;

    fn pair() -> (Link, OwnedFd) {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let (ours, theirs) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).expect("a pair");
        (Link::new(ours), theirs)
    }

    /// Everything the daemon reads, the shim going on as soon as there is room.
    fn read(link: &mut Link, daemon: &OwnedFd) -> Vec<FromShim> {
        let mut buffer = vec![0; PACKET_BYTES];
        let mut messages = Vec::new();
        loop {
            match packet::receive(daemon, &mut buffer, Patience::Now) {
                Ok(packet) => messages.push(decode(&buffer[..packet.len]).expect("a message")),
                Err(_) => return messages,
            }
            link.flush();
        }
    }

    #[test]
    fn a_daemon_that_reads_late_misses_no_end_of_output_and_no_answer() {
        let (mut link, daemon) = pair();
        let marks = 20_000;
        for end in 1..=marks {
            link.send(&FromShim::Output { end }, None);
            if end % 1_000 == 0 {
                link.send(&FromShim::InputTaken { len: end }, None);
            }
        }
        assert!(link.waiting.0.len() <= WAITING_MAX, "bounded");
        let question = crate::place::Question::Status;
        for _ in 0..2 * WAITING_MAX {
            let asked = FromShim::Asked { question, end: 0 };
            link.send(&asked, None);
        }
        assert!(link.waiting.0.len() <= WAITING_MAX, "bounded");
        link.send(&FromShim::Output { end: marks + 1 }, None);
        link.send(&FromShim::Frozen { frozen: true }, None);
        let (mut last, mut taken, mut frozen) = (0, 0, false);
        for message in read(&mut link, &daemon) {
            if let FromShim::Output { end } = message {
                assert!(end > last, "in order");
                last = end;
            }
            taken += u64::from(matches!(message, FromShim::InputTaken { .. }));
            frozen |= matches!(message, FromShim::Frozen { .. });
        }
        assert_eq!((last, taken, frozen), (marks + 1, marks / 1_000, true));
    }
}
