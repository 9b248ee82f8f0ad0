//! The daemon's connection to one shim: sends commands and receives events.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ostler_backend::{
    BoxFuture, COMMAND_TIMEOUT_MS, ControlCommand, ControlError, ProcessControl, ProcessEvent,
    ReceivedEvent,
};
use ostler_model::ExecutionId;
use ostler_sys::packet::PacketError;
use ostler_sys::seqpacket::{self, PACKET_BYTES, ReceiveMode};
use ostler_sys::{async_fd, open_files};
use parking_lot::Mutex;
use rustix::io::Errno;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::stopped_shim::continue_if_stopped;
use crate::proto::{ShimRequest, decode, encode};

/// How many events are queued for an engine; then the shim blocks with the next ones.
pub(super) const EVENTS_MAX: usize = 64;

/// How long a shim is idle before a start looks whether a signal has stopped it.
const IDLE_UNCHECKED: Duration = Duration::from_millis(20);

/// The attempt a shim runs.
#[derive(Debug)]
pub(super) struct ActiveAttempt {
    pub(super) id: ExecutionId,
    pub(super) attempt: u32,
    /// None once its end was reported: its shim exits, and processes that it could not kill are
    /// swept then.
    pub(super) events: Option<mpsc::Sender<ReceivedEvent>>,
}

/// One shim, idle or running an attempt.
#[derive(Debug)]
pub(super) struct ShimConnection {
    socket: AsyncFd<OwnedFd>,
    /// Its pid; none where it is a thread, or was found by its control socket.
    pub(super) pid: Option<u32>,
    active: Mutex<Option<ActiveAttempt>>,
    /// Since when it is idle.
    idle_since: Mutex<Instant>,
}

/// The result of receiving a packet.
#[derive(Debug)]
pub(super) enum ReceiveOutcome {
    /// Forwarded, or ignored.
    Handled,
    /// The first message of a shim found by its control socket.
    Hello(Box<ProcessEvent>),
    /// The shim accepts the next plan; with the execution whose attempt ended.
    Idle(Option<ExecutionId>),
    /// The shim has exited.
    Closed,
}

impl ShimConnection {
    pub(super) fn new(socket: OwnedFd, pid: Option<u32>) -> io::Result<Self> {
        Ok(Self {
            // Not for writing: every packet a shim takes would wake us.
            socket: async_fd::register(socket, Interest::READABLE)?,
            pid,
            active: Mutex::new(None),
            idle_since: Mutex::new(Instant::now()),
        })
    }

    /// It accepts the next plan.
    pub(super) fn mark_idle(&self) {
        *self.idle_since.lock() = Instant::now();
    }

    /// Continues it where a signal stopped it while it was idle. Looked at only after a while: a start
    /// right after an end is not to pay for it.
    pub(super) fn continue_after_idleness(&self) {
        let idle = self.idle_since.lock().elapsed();
        if let (Some(pid), true) = (self.pid, idle >= IDLE_UNCHECKED) {
            continue_if_stopped(pid);
        }
    }

    /// Continues it where a signal has stopped it.
    pub(super) fn continue_if_stopped(&self) {
        if let Some(pid) = self.pid {
            continue_if_stopped(pid);
        }
    }

    /// Makes this attempt the one whose events are received.
    pub(super) fn start_attempt(&self, attempt: ActiveAttempt) {
        *self.active.lock() = Some(attempt);
    }

    /// Removes the attempt and returns it.
    pub(super) fn take_attempt(&self) -> Option<ActiveAttempt> {
        self.active.lock().take()
    }

    /// Removes the channel: nothing more is reported of the attempt.
    fn take_events(&self) -> Option<mpsc::Sender<ReceivedEvent>> {
        self.active.lock().as_mut().and_then(|it| it.events.take())
    }

    fn is_active(&self, id: ExecutionId, attempt: u32) -> bool {
        let current = self.active.lock();
        current
            .as_ref()
            .is_some_and(|now| now.id == id && now.attempt == attempt && now.events.is_some())
    }

    /// Closes both directions: the shim and our reader both notice a hang-up.
    pub(super) fn shutdown(&self) {
        let _gone = rustix::net::shutdown(self.socket.get_ref(), rustix::net::Shutdown::Both);
    }

    /// Sends one packet, waiting until the socket has room for it.
    pub(super) async fn send(
        &self,
        bytes: &[u8],
        descriptor: Option<BorrowedFd<'_>>,
    ) -> Result<(), Errno> {
        loop {
            match seqpacket::send(self.socket.get_ref().as_fd(), bytes, descriptor) {
                Err(Errno::AGAIN) => {}
                done => return done,
            }
            self.wait_writable().await.map_err(|_| Errno::PIPE)?;
        }
    }

    /// Waits until the shim has read something; rare, so that it may cost a registration.
    async fn wait_writable(&self) -> io::Result<()> {
        let clone = || self.socket.get_ref().try_clone();
        let clone_fd = open_files::with_emergency_fds(clone, open_files::is_exhausted_io)?;
        let again = async_fd::register(clone_fd, Interest::WRITABLE)?;
        // Registration reports the present state: a read in between is not missed.
        again.writable().await.map(|_guard| ())
    }

    /// Receives one packet.
    pub(super) async fn receive(&self) -> ReceiveOutcome {
        let mut buffer = [0_u8; SMALL_PACKET_BYTES];
        let packet = loop {
            match seqpacket::receive(self.socket.get_ref(), &mut buffer, ReceiveMode::NonBlocking) {
                Err(Errno::AGAIN) => {}
                Err(_) => return ReceiveOutcome::Closed,
                Ok(packet) if packet.len == 0 => return ReceiveOutcome::Closed,
                Ok(packet) => break packet,
            }
            match self.socket.readable().await {
                Ok(mut guard) => guard.clear_ready(),
                Err(_) => return ReceiveOutcome::Closed,
            }
        };
        match decode(&buffer[..packet.len.min(SMALL_PACKET_BYTES)]) {
            Ok(message) => self.dispatch(message, packet.descriptor).await,
            Err(PacketError::Version { .. } | PacketError::Malformed(_)) => ReceiveOutcome::Handled,
        }
    }

    async fn dispatch(&self, event: ProcessEvent, memory: Option<OwnedFd>) -> ReceiveOutcome {
        if let ProcessEvent::Hello { .. } = event {
            return ReceiveOutcome::Hello(Box::new(event));
        }
        if let ProcessEvent::Exited { idle, .. } = event {
            return self.on_exited(event.into(), idle).await;
        }
        let events = self
            .active
            .lock()
            .as_ref()
            .and_then(|current| current.events.clone());
        self.forward(events, ReceivedEvent { event, memory }).await;
        ReceiveOutcome::Handled
    }

    async fn on_exited(&self, event: ReceivedEvent, idle: bool) -> ReceiveOutcome {
        if idle {
            let finished = self.take_attempt();
            let id = finished.as_ref().map(|current| current.id);
            let events = finished.and_then(|current| current.events);
            self.forward(events, event).await;
            return ReceiveOutcome::Idle(id);
        }
        self.forward(self.take_events(), event).await;
        ReceiveOutcome::Handled
    }

    /// An engine that does not listen any more misses nothing: everything is on disk.
    async fn forward(&self, events: Option<mpsc::Sender<ReceivedEvent>>, event: ReceivedEvent) {
        if let Some(events) = events {
            let _closed = events.send(event).await;
        }
    }
}

/// The size of the largest message a shim sends, in bytes.
const SMALL_PACKET_BYTES: usize = 8 * 1024;

/// Sends commands to one attempt.
#[derive(Debug)]
pub(super) struct AttemptControl {
    pub(super) connection: Arc<ShimConnection>,
    pub(super) id: ExecutionId,
    pub(super) attempt: u32,
    /// The pid of its shim; none where that is a thread.
    pub(super) shim_pid: Option<u32>,
    /// Whether it has standard input.
    pub(super) has_input: bool,
    /// Whether it has a terminal.
    pub(super) has_terminal: bool,
}

impl AttemptControl {
    fn check(&self, command: &ControlCommand) -> Result<(), ControlError> {
        match command {
            ControlCommand::Input(bytes)
            | ControlCommand::SecretInput(bytes)
            | ControlCommand::InputOnce { bytes, .. }
                if bytes.len() > ostler_backend::INPUT_CHUNK_BYTES =>
            {
                Err(ControlError::Unsupported(
                    "more input than one order carries",
                ))
            }
            ControlCommand::Input(_)
            | ControlCommand::SecretInput(_)
            | ControlCommand::InputOnce { .. }
            | ControlCommand::CloseInput
                if !self.has_input =>
            {
                Err(ControlError::Unsupported(
                    "the command was started without an input",
                ))
            }
            ControlCommand::Resize(_) if !self.has_terminal => {
                Err(ControlError::Unsupported("the command has no terminal"))
            }
            ControlCommand::Stop { .. }
            | ControlCommand::Signal(_)
            | ControlCommand::Input(_)
            | ControlCommand::SecretInput(_)
            | ControlCommand::InputOnce { .. }
            | ControlCommand::CloseInput
            | ControlCommand::Resize(_)
            | ControlCommand::Watch(_)
            | ControlCommand::Retain(_)
            | ControlCommand::Freeze(_) => Ok(()),
        }
    }

    async fn send_command(&self, command: ControlCommand) -> Result<(), ControlError> {
        self.check(&command)?;
        if !self.connection.is_active(self.id, self.attempt) {
            return Err(ControlError::Ended);
        }
        if let (true, Some(shim_pid)) = (must_act(&command), self.shim_pid) {
            continue_if_stopped(shim_pid);
        }
        let (id, attempt) = (self.id, self.attempt);
        let bytes = encode(&ShimRequest::Command {
            id,
            attempt,
            command,
        });
        let bytes = bytes.map_err(|_| ControlError::Unsupported("the order cannot be sent"))?;
        debug_assert!(bytes.len() <= PACKET_BYTES);
        let limit = Duration::from_millis(COMMAND_TIMEOUT_MS);
        match timeout(limit, self.connection.send(&bytes, None)).await {
            Err(_) => Err(ControlError::Busy),
            Ok(Err(_)) => Err(ControlError::Ended),
            Ok(Ok(())) => Ok(()),
        }
    }
}

/// Whether a stopped shim is continued for a command.
const fn must_act(command: &ControlCommand) -> bool {
    match command {
        ControlCommand::Stop { .. }
        | ControlCommand::Signal(_)
        | ControlCommand::Freeze(_)
        | ControlCommand::CloseInput
        | ControlCommand::Resize(_) => true,
        // Often sent: a stopped shim is found with the next reading of what its tree uses.
        ControlCommand::Input(_)
        | ControlCommand::SecretInput(_)
        | ControlCommand::InputOnce { .. }
        | ControlCommand::Watch(_)
        | ControlCommand::Retain(_) => false,
    }
}

impl ProcessControl for AttemptControl {
    fn send(&self, command: ControlCommand) -> BoxFuture<'_, Result<(), ControlError>> {
        Box::pin(self.send_command(command))
    }
}
