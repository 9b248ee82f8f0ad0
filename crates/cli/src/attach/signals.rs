//! Signals that an attach client handles.

use std::io;

use ostler_model::{ErrorCode, Signal};
use rustix::process::{getpid, kill_process};
use tokio::signal::unix::{self, SignalKind, signal};

use crate::error::CommandError;

/// The meaning of a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SignalEvent {
    /// Detach and exit; the session stays.
    Exit(Signal),
    /// To stop for a while.
    Suspend,
    /// The process was stopped and continues.
    Resume,
    /// The local terminal was resized.
    Resized,
}

#[derive(Debug)]
pub(super) struct AttachSignals {
    terminate: unix::Signal,
    hangup: unix::Signal,
    quit: unix::Signal,
    interrupt: unix::Signal,
    stop: unix::Signal,
    resume: unix::Signal,
    window: unix::Signal,
}

impl AttachSignals {
    /// Installs the handlers.
    ///
    /// # Errors
    /// When the system refuses.
    pub(super) fn install() -> Result<Self, CommandError> {
        Self::register().map_err(|error| {
            CommandError::new(ErrorCode::Internal, format!("no signal handler: {error}"))
        })
    }

    fn register() -> io::Result<Self> {
        let raw = |signal: rustix::process::Signal| SignalKind::from_raw(signal.as_raw());
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
            quit: signal(SignalKind::quit())?,
            interrupt: signal(SignalKind::interrupt())?,
            stop: signal(raw(rustix::process::Signal::TSTP))?,
            resume: signal(raw(rustix::process::Signal::CONT))?,
            window: signal(SignalKind::window_change())?,
        })
    }

    /// Waits for the next signal. Cancel safe.
    pub(super) async fn next(&mut self) -> SignalEvent {
        tokio::select! {
            _ = self.terminate.recv() => SignalEvent::Exit(Signal::TERM),
            _ = self.hangup.recv() => SignalEvent::Exit(Signal::HUP),
            _ = self.quit.recv() => SignalEvent::Exit(quit_signal()),
            _ = self.interrupt.recv() => SignalEvent::Exit(Signal::INT),
            _ = self.stop.recv() => SignalEvent::Suspend,
            _ = self.resume.recv() => SignalEvent::Resume,
            _ = self.window.recv() => SignalEvent::Resized,
        }
    }
}

fn quit_signal() -> Signal {
    Signal::try_from(SignalKind::quit().as_raw_value()).unwrap_or(Signal::TERM)
}

/// Stops this process until it receives SIGCONT.
pub(crate) fn stop_self() {
    if let Err(error) = kill_process(getpid(), rustix::process::Signal::STOP) {
        tracing::debug!(%error, "not stopped");
    }
}
