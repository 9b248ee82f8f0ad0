//! Signals that mean something to a window.

use std::io;

use ostler_model::{ErrorCode, Signal};
use rustix::process::{getpid, kill_process};
use tokio::signal::unix::{self, SignalKind, signal};

use crate::error::CommandError;

/// What a signal asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Call {
    /// To go; the session stays.
    Leave(Signal),
    /// To stop for a while.
    Suspend,
    /// We were stopped and go on.
    Resume,
    /// Our terminal has another size.
    Resized,
}

/// Caught signals.
#[derive(Debug)]
pub(super) struct Signals {
    terminate: unix::Signal,
    hangup: unix::Signal,
    interrupt: unix::Signal,
    stop: unix::Signal,
    resume: unix::Signal,
    window: unix::Signal,
}

impl Signals {
    /// Catches them.
    ///
    /// # Errors
    /// When the system does not let us.
    pub(super) fn catch() -> Result<Self, CommandError> {
        Self::all().map_err(|error| {
            CommandError::new(ErrorCode::Internal, format!("no signal handler: {error}"))
        })
    }

    fn all() -> io::Result<Self> {
        let raw = |signal: rustix::process::Signal| SignalKind::from_raw(signal.as_raw());
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
            interrupt: signal(SignalKind::interrupt())?,
            stop: signal(raw(rustix::process::Signal::TSTP))?,
            resume: signal(raw(rustix::process::Signal::CONT))?,
            window: signal(SignalKind::window_change())?,
        })
    }

    /// The next one. Cancel safe.
    pub(super) async fn next(&mut self) -> Call {
        tokio::select! {
            _ = self.terminate.recv() => Call::Leave(Signal::TERM),
            _ = self.hangup.recv() => Call::Leave(Signal::HUP),
            _ = self.interrupt.recv() => Call::Leave(Signal::INT),
            _ = self.stop.recv() => Call::Suspend,
            _ = self.resume.recv() => Call::Resume,
            _ = self.window.recv() => Call::Resized,
        }
    }
}

/// Stops this process until somebody continues it.
pub(super) fn stop_here() {
    if let Err(error) = kill_process(getpid(), rustix::process::Signal::STOP) {
        tracing::debug!(%error, "not stopped");
    }
}
