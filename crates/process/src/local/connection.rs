//! The daemon's line to one shim: orders go out, reports come in.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ostler_model::ExecutionId;
use rustix::io::Errno;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::open_files;
use crate::place::{BoxFuture, Control, ControlError, ORDER_TIMEOUT_MS, Order, Report};
use crate::proto::{FromShim, ProtocolError, ToShim, decode, encode};
use crate::sys::packet::{self, PACKET_BYTES, Patience};
use crate::sys::reactor;

/// Reports that may wait for an engine; then the shim waits with the next ones.
pub(super) const REPORTS_MAX: usize = 64;

/// The attempt a shim carries out.
#[derive(Debug)]
pub(super) struct Current {
    pub(super) id: ExecutionId,
    pub(super) attempt: u32,
    /// None once its end was told: its shim leaves, and what it could not end is swept then.
    pub(super) reports: Option<mpsc::Sender<Report>>,
}

/// One shim, idle or at work.
#[derive(Debug)]
pub(super) struct Connection {
    socket: AsyncFd<OwnedFd>,
    /// Its pid; none where it is a thread, or was found by its control socket.
    pub(super) pid: Option<u32>,
    current: Mutex<Option<Current>>,
}

/// What a packet meant for the connection.
#[derive(Debug)]
pub(super) enum Received {
    /// Passed on, or of no interest.
    Passed,
    /// The first words of a shim found by its control socket.
    Hello(Box<FromShim>),
    /// The shim may take the next plan; whose attempt ended.
    Idle(Option<ExecutionId>),
    /// The shim is gone.
    Closed,
}

impl Connection {
    pub(super) fn new(socket: OwnedFd, pid: Option<u32>) -> io::Result<Self> {
        Ok(Self {
            // Not for writing: every packet a shim takes would wake us.
            socket: reactor::register(socket, Interest::READABLE)?,
            pid,
            current: Mutex::new(None),
        })
    }

    fn current(&self) -> std::sync::MutexGuard<'_, Option<Current>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes this attempt the one whose reports come in.
    pub(super) fn begin(&self, current: Current) {
        *self.current() = Some(current);
    }

    /// Forgets the attempt, and returns it.
    pub(super) fn end(&self) -> Option<Current> {
        self.current().take()
    }

    /// Nothing is to be told of the attempt after this.
    fn end_reports(&self) -> Option<mpsc::Sender<Report>> {
        self.current().as_mut().and_then(|it| it.reports.take())
    }

    fn is_current(&self, id: ExecutionId, attempt: u32) -> bool {
        let current = self.current();
        current
            .as_ref()
            .is_some_and(|now| now.id == id && now.attempt == attempt && now.reports.is_some())
    }

    /// Closes both directions: the shim sees its daemon's end, and so does our reader.
    pub(super) fn shut(&self) {
        let _gone = rustix::net::shutdown(self.socket.get_ref(), rustix::net::Shutdown::Both);
    }

    /// Sends one packet, waiting for room.
    pub(super) async fn send(
        &self,
        bytes: &[u8],
        descriptor: Option<BorrowedFd<'_>>,
    ) -> Result<(), Errno> {
        loop {
            match packet::send(self.socket.get_ref().as_fd(), bytes, descriptor) {
                Err(Errno::AGAIN) => {}
                done => return done,
            }
            self.room().await.map_err(|_| Errno::PIPE)?;
        }
    }

    /// Until the shim has taken something; rare, so that it may cost a registration.
    async fn room(&self) -> io::Result<()> {
        let clone = || self.socket.get_ref().try_clone();
        let again = open_files::with_held(clone, open_files::is_none_left)?;
        let again = reactor::register(again, Interest::WRITABLE)?;
        // Registered with what is so already: what was taken meanwhile is not missed.
        again.writable().await.map(|_guard| ())
    }

    /// Takes in one packet.
    pub(super) async fn receive(&self) -> Received {
        let mut buffer = [0_u8; SMALL_PACKET_BYTES];
        let packet = loop {
            match packet::receive(self.socket.get_ref(), &mut buffer, Patience::Now) {
                Err(Errno::AGAIN) => {}
                Err(_) => return Received::Closed,
                Ok(packet) if packet.len == 0 => return Received::Closed,
                Ok(packet) => break packet,
            }
            match self.socket.readable().await {
                Ok(mut guard) => guard.clear_ready(),
                Err(_) => return Received::Closed,
            }
        };
        match decode(&buffer[..packet.len.min(SMALL_PACKET_BYTES)]) {
            Ok(message) => self.take_in(message, packet.descriptor).await,
            Err(ProtocolError::Version(_) | ProtocolError::Malformed(_)) => Received::Passed,
        }
    }

    async fn take_in(&self, message: FromShim, descriptor: Option<OwnedFd>) -> Received {
        let report = match message {
            hello @ FromShim::Hello { .. } => return Received::Hello(Box::new(hello)),
            FromShim::Exited { record, idle } => {
                return self.exited(Report::Exited(record), idle).await;
            }
            FromShim::Started { pid, at } => Report::Started { pid, at },
            FromShim::Output { end } => Report::Output { end },
            FromShim::InputTaken { len } => Report::InputTaken { len },
            FromShim::Frozen { frozen } => Report::Frozen { frozen },
            FromShim::LimitHit { limit } => Report::LimitHit { limit },
            FromShim::Asked { question, end } => Report::Asked { question, end },
            FromShim::Detached { status } => Report::Detached { status },
            FromShim::ClockRanOut { clock } => Report::ClockRanOut { clock },
            FromShim::JournalFailed { detail, base } => Report::JournalFailed {
                detail,
                memory: base.zip(descriptor),
            },
            FromShim::JournalReturned { missing } => Report::JournalReturned { missing },
            FromShim::InputProgress { input } => Report::InputProgress(input),
        };
        let reports = self
            .current()
            .as_ref()
            .and_then(|current| current.reports.clone());
        self.pass(reports, report).await;
        Received::Passed
    }

    async fn exited(&self, report: Report, idle: bool) -> Received {
        if idle {
            let ended = self.end();
            let id = ended.as_ref().map(|current| current.id);
            let reports = ended.and_then(|current| current.reports);
            self.pass(reports, report).await;
            return Received::Idle(id);
        }
        self.pass(self.end_reports(), report).await;
        Received::Passed
    }

    /// An engine that does not listen any more misses nothing: everything is on disk.
    async fn pass(&self, reports: Option<mpsc::Sender<Report>>, report: Report) {
        if let Some(reports) = reports {
            let _unheard = reports.send(report).await;
        }
    }
}

/// Bytes of the largest message a shim sends.
const SMALL_PACKET_BYTES: usize = 8 * 1024;

/// Orders for one attempt.
#[derive(Debug)]
pub(super) struct AttemptControl {
    pub(super) connection: Arc<Connection>,
    pub(super) id: ExecutionId,
    pub(super) attempt: u32,
    /// Whether it has an input.
    pub(super) takes_input: bool,
    /// Whether it has a terminal.
    pub(super) has_terminal: bool,
}

impl AttemptControl {
    fn check(&self, order: &Order) -> Result<(), ControlError> {
        match order {
            Order::Input(bytes) | Order::InputOnce { bytes, .. }
                if bytes.len() > crate::place::INPUT_CHUNK_BYTES =>
            {
                Err(ControlError::Unsupported(
                    "more input than one order carries",
                ))
            }
            Order::Input(_) | Order::InputOnce { .. } | Order::CloseInput if !self.takes_input => {
                Err(ControlError::Unsupported(
                    "the command was started without an input",
                ))
            }
            Order::Resize(_) if !self.has_terminal => {
                Err(ControlError::Unsupported("the command has no terminal"))
            }
            Order::Stop { .. }
            | Order::Signal(_)
            | Order::Input(_)
            | Order::InputOnce { .. }
            | Order::CloseInput
            | Order::Resize(_)
            | Order::Watch(_)
            | Order::Retain(_)
            | Order::Freeze(_) => Ok(()),
        }
    }

    async fn deliver(&self, order: Order) -> Result<(), ControlError> {
        self.check(&order)?;
        if !self.connection.is_current(self.id, self.attempt) {
            return Err(ControlError::Ended);
        }
        let (id, attempt) = (self.id, self.attempt);
        let bytes = encode(&ToShim::Order { id, attempt, order });
        let bytes = bytes.map_err(|_| ControlError::Unsupported("the order cannot be sent"))?;
        debug_assert!(bytes.len() <= PACKET_BYTES);
        let limit = Duration::from_millis(ORDER_TIMEOUT_MS);
        match timeout(limit, self.connection.send(&bytes, None)).await {
            Err(_) => Err(ControlError::Busy),
            Ok(Err(_)) => Err(ControlError::Ended),
            Ok(Ok(())) => Ok(()),
        }
    }
}

impl Control for AttemptControl {
    fn send(&self, order: Order) -> BoxFuture<'_, Result<(), ControlError>> {
        Box::pin(self.deliver(order))
    }
}
