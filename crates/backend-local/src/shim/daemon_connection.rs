//! The shim's connection to a daemon: the socket it was started with, or, once that daemon is gone,
//! `ctl.sock` in the execution's directory, where the next daemon connects.

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use ostler_backend::{ProcessEvent, execution_dir};
use ostler_sys::seqpacket::{self, PACKET_BYTES, ReceiveMode};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::renameat;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind};
use rustix::net::{listen, socket_with, sockopt};

use crate::proto::{ShimRequest, decode, encode};

/// The control socket's name in an execution's directory, while no daemon lives.
pub(crate) const CONTROL_SOCKET: &str = "ctl.sock";
/// The most queued messages for a daemon that does not read; beyond that, prompts of programs are
/// dropped. Of output notifications only the last one is queued, and all others are sent once, or
/// once per command.
const WAITING_MAX: usize = 256;
/// How long the last messages may wait for a daemon that does not read, in milliseconds.
const FLUSH_TIMEOUT_MS: i64 = 2_000;
/// The control socket's name before it is listening.
const UNFINISHED_SOCKET: &str = "ctl.tmp";
/// The backlog of listen(2) for connecting daemons.
const BACKLOG: i32 = 4;

/// The state of the connection.
#[derive(Debug)]
enum DaemonPeer {
    /// A daemon is connected.
    Daemon(OwnedFd),
    /// No daemon; one may connect.
    Listening(OwnedFd),
    /// No daemon, and no socket to connect to.
    Nobody,
}

/// The result of a receive.
#[derive(Debug)]
pub(crate) enum DaemonEvent {
    /// A message.
    Message(ShimRequest, Option<OwnedFd>),
    /// Nothing now.
    Nothing,
    /// A message of another version, or one that cannot be decoded.
    Malformed,
    /// The daemon is gone.
    Hangup,
    /// A new daemon connected.
    Reconnected,
}

/// The connection and its queue.
#[derive(Debug)]
pub(crate) struct DaemonConnection {
    peer: DaemonPeer,
    queue: SendQueue,
}

/// Messages queued for a daemon that does not read, in order.
#[derive(Debug)]
struct SendQueue(VecDeque<QueuedPacket>);

#[derive(Debug)]
struct QueuedPacket {
    bytes: Vec<u8>,
    descriptor: Option<OwnedFd>,
    /// Whether it is a notice of the output's end, which a later one supersedes.
    is_output_end: bool,
}

impl SendQueue {
    /// Queues a message. A notice of the output's end replaces the one before it.
    fn push(&mut self, message: &ProcessEvent, descriptor: Option<OwnedFd>) {
        let is_query = matches!(message, ProcessEvent::TerminalQuery { .. });
        if is_query && self.0.len() >= WAITING_MAX {
            return;
        }
        let Ok(bytes) = encode(message) else {
            return;
        };
        let is_output_end = matches!(message, ProcessEvent::Output { .. });
        if is_output_end && self.0.back().is_some_and(|last| last.is_output_end) {
            self.0.pop_back();
        }
        self.0.push_back(QueuedPacket {
            bytes,
            descriptor,
            is_output_end,
        });
    }
}

impl DaemonConnection {
    /// A connection to the daemon at the other end of `socket`.
    pub(crate) const fn new(socket: OwnedFd) -> Self {
        Self {
            peer: DaemonPeer::Daemon(socket),
            queue: SendQueue(VecDeque::new()),
        }
    }

    /// The descriptor to poll, if any, and the events to poll for.
    pub(crate) fn poll_target(&self) -> Option<(BorrowedFd<'_>, PollFlags)> {
        match &self.peer {
            DaemonPeer::Daemon(socket) if self.queue.0.is_empty() => {
                Some((socket.as_fd(), PollFlags::IN))
            }
            DaemonPeer::Daemon(socket) => Some((socket.as_fd(), PollFlags::IN | PollFlags::OUT)),
            DaemonPeer::Listening(listener) => Some((listener.as_fd(), PollFlags::IN)),
            DaemonPeer::Nobody => None,
        }
    }

    /// As [`poll_target`](Self::poll_target), for poll(2).
    pub(crate) fn poll_fd(&self) -> Option<PollFd<'_>> {
        let (descriptor, flags) = self.poll_target()?;
        Some(PollFd::from_borrowed_fd(descriptor, flags))
    }

    /// Whether a message or the daemon's hang-up arrives within `limit`.
    pub(crate) fn is_readable_within(&self, limit: Duration) -> bool {
        let Some(mut polled) = self.poll_fd().map(|polled| [polled]) else {
            return true;
        };
        let limit = Timespec::try_from(limit).unwrap_or_default();
        rustix::event::poll(&mut polled, Some(&limit)) != Ok(0)
    }

    /// Whether a daemon is connected.
    pub(crate) const fn has_daemon(&self) -> bool {
        matches!(self.peer, DaemonPeer::Daemon(_))
    }

    /// Sends a message, or queues it until the daemon reads again.
    pub(crate) fn send(&mut self, message: &ProcessEvent, descriptor: Option<OwnedFd>) {
        if !self.has_daemon() {
            return;
        }
        self.queue.push(message, descriptor);
        self.flush();
    }

    /// Sends queued messages, as far as the daemon accepts them.
    pub(crate) fn flush(&mut self) {
        let DaemonPeer::Daemon(socket) = &self.peer else {
            self.queue.0.clear();
            return;
        };
        while let Some(first) = self.queue.0.front() {
            let descriptor = first.descriptor.as_ref().map(AsFd::as_fd);
            match seqpacket::send(socket.as_fd(), &first.bytes, descriptor) {
                Err(Errno::AGAIN) => return,
                // A daemon that is gone is detected by the end of its messages.
                Ok(()) | Err(_) => drop(self.queue.0.pop_front()),
            }
        }
    }

    /// Waits until everything was sent, or the daemon does not read within the timeout.
    pub(crate) fn flush_blocking(&mut self) {
        let limit = rustix::event::Timespec {
            tv_sec: FLUSH_TIMEOUT_MS / 1_000,
            tv_nsec: 0,
        };
        while !self.queue.0.is_empty() {
            let DaemonPeer::Daemon(socket) = &self.peer else {
                return;
            };
            let mut poll = [PollFd::new(socket, PollFlags::OUT)];
            if !matches!(rustix::event::poll(&mut poll, Some(&limit)), Ok(1..)) {
                return;
            }
            self.flush();
        }
    }

    /// Receives one message, or accepts one daemon.
    pub(crate) fn receive(&mut self, buffer: &mut [u8], patience: ReceiveMode) -> DaemonEvent {
        match &self.peer {
            DaemonPeer::Daemon(socket) => {
                let buffer = &mut buffer[..PACKET_BYTES];
                match seqpacket::receive(socket, buffer, patience) {
                    Err(Errno::AGAIN) => DaemonEvent::Nothing,
                    Err(_) => self.disconnect(),
                    Ok(packet) if packet.len == 0 => self.disconnect(),
                    Ok(packet) => match decode(&buffer[..packet.len]) {
                        Ok(message) => DaemonEvent::Message(message, packet.descriptor),
                        Err(_) => DaemonEvent::Malformed,
                    },
                }
            }
            DaemonPeer::Listening(_) => self.accept(),
            DaemonPeer::Nobody => DaemonEvent::Nothing,
        }
    }

    fn disconnect(&mut self) -> DaemonEvent {
        self.peer = DaemonPeer::Nobody;
        self.queue.0.clear();
        DaemonEvent::Hangup
    }

    /// Opens `ctl.sock` in `dir` for the next daemon, with a socket of [`bind_spare`] or a new one; true
    /// if it is listening.
    pub(crate) fn listen(&mut self, dir: BorrowedFd<'_>, spare: Option<OwnedFd>) -> bool {
        match open_listener(dir, spare) {
            Ok(listener) => self.peer = DaemonPeer::Listening(listener),
            Err(_) => return false,
        }
        true
    }

    fn accept(&mut self) -> DaemonEvent {
        let DaemonPeer::Listening(listener) = &self.peer else {
            return DaemonEvent::Nothing;
        };
        let Ok(caller) = accept_with(listener, SocketFlags::CLOEXEC) else {
            return DaemonEvent::Nothing;
        };
        if !is_same_user(caller.as_fd()) {
            return DaemonEvent::Nothing;
        }
        self.peer = DaemonPeer::Daemon(caller);
        DaemonEvent::Reconnected
    }
}

/// A socket with a file in `dir` that listens to nobody yet: a disk that is full of files later has
/// room for no other. The path goes through the directory's descriptor, so that it fits into a socket
/// address however long it is.
pub(crate) fn bind_spare(dir: BorrowedFd<'_>) -> Result<OwnedFd, Errno> {
    remove_spare(dir);
    let socket = socket_with(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
        None,
    )?;
    bind(&socket, &control_address(dir, UNFINISHED_SOCKET)?)?;
    Ok(socket)
}

/// Removes the file of a socket that was not used.
pub(crate) fn remove_spare(dir: BorrowedFd<'_>) {
    execution_dir::remove(dir, UNFINISHED_SOCKET);
}

fn open_listener(dir: BorrowedFd<'_>, spare: Option<OwnedFd>) -> Result<OwnedFd, Errno> {
    let listener = spare.map_or_else(|| bind_spare(dir), Ok)?;
    // Renamed only once it is listening: a process that sees the name can connect.
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

    fn pair() -> (DaemonConnection, OwnedFd) {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let (ours, theirs) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).expect("a pair");
        (DaemonConnection::new(ours), theirs)
    }

    /// Everything the daemon reads, the shim going on as soon as there is room.
    fn read(link: &mut DaemonConnection, daemon: &OwnedFd) -> Vec<ProcessEvent> {
        let mut buffer = vec![0; PACKET_BYTES];
        let mut messages = Vec::new();
        loop {
            match seqpacket::receive(daemon, &mut buffer, ReceiveMode::NonBlocking) {
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
            link.send(&ProcessEvent::Output { end }, None);
            if end % 1_000 == 0 {
                link.send(&ProcessEvent::InputAccepted { len: end }, None);
            }
        }
        assert!(link.queue.0.len() <= WAITING_MAX, "bounded");
        let question = ostler_backend::TerminalQuery::Status;
        for _ in 0..2 * WAITING_MAX {
            let requested = ProcessEvent::TerminalQuery {
                query: question,
                end: 0,
            };
            link.send(&requested, None);
        }
        assert!(link.queue.0.len() <= WAITING_MAX, "bounded");
        link.send(&ProcessEvent::Output { end: marks + 1 }, None);
        link.send(&ProcessEvent::Frozen { frozen: true }, None);
        let (mut last, mut taken, mut frozen) = (0, 0, false);
        for message in read(&mut link, &daemon) {
            if let ProcessEvent::Output { end } = message {
                assert!(end > last, "in order");
                last = end;
            }
            taken += u64::from(matches!(message, ProcessEvent::InputAccepted { .. }));
            frozen |= matches!(message, ProcessEvent::Frozen { .. });
        }
        assert_eq!((last, taken, frozen), (marks + 1, marks / 1_000, true));
    }
}
