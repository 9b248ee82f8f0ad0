//! How an execution ended.

use serde::{Deserialize, Serialize};

use crate::signal::Signal;

/// Which clock ran out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimeoutKind {
    /// The wall-clock limit of the command.
    Wall,
    /// No output for the idle limit.
    Idle,
}

/// Why nobody can say how a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LostReason {
    /// The machine was restarted while it ran.
    Reboot,
    /// Its shim was killed; the tree was swept.
    ShimKilled,
    /// The shim is gone and left neither record nor members.
    NoRecord,
    /// Its directory or files were removed or garbled from outside.
    FilesDamaged,
    /// The engine ran without a keeper and was itself killed.
    EngineKilled,
}

/// The one cause of an end. Closed: every face maps all of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum TerminationCause {
    /// The command returned a status of its own.
    Exited,
    /// A signal that was not ours ended it.
    Signaled,
    /// Its time ran out and it was ended with its tree.
    TimedOut {
        /// Which clock.
        clock: TimeoutKind,
    },
    /// Somebody asked for the stop.
    Stopped {
        /// What they gave as the reason.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// The kernel or a limit killed it for its memory.
    OutOfMemory,
    /// It never ran.
    SpawnFailed {
        /// The step that failed, for example `exec`.
        step: String,
        /// The kernel's error number, where there is one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        errno: Option<i32>,
        /// For people.
        message: String,
    },
    /// Nobody can say; never reported as exit 0.
    Lost {
        /// Why.
        reason: LostReason,
    },
}

/// `{cause, code?, signal?}`: a signal leaves the code empty and the other way round.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Termination {
    /// The one cause.
    pub cause: TerminationCause,
    /// The command's exit status, 0 to 255, where it returned one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<i32>,
    /// The signal that ended it, where one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<Signal>,
}

/// How the leader of an attempt ended, as waitid(2) told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitStatus {
    /// It returned this status.
    Code(i32),
    /// This signal ended it.
    Signal(Signal),
}

impl std::fmt::Display for WaitStatus {
    /// One clause for people: `exit code 1`, `ended by SIGKILL`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exit code {code}"),
            Self::Signal(signal) => write!(f, "ended by {signal}"),
        }
    }
}

impl Termination {
    /// An end with a wait status behind it.
    #[must_use]
    pub const fn new(cause: TerminationCause, status: WaitStatus) -> Self {
        match status {
            WaitStatus::Code(code) => Self {
                cause,
                code: Some(code),
                signal: None,
            },
            WaitStatus::Signal(signal) => Self {
                cause,
                code: None,
                signal: Some(signal),
            },
        }
    }

    /// An end nobody saw a wait status of: `SpawnFailed`, `Lost`.
    #[must_use]
    pub const fn without_status(cause: TerminationCause) -> Self {
        Self {
            cause,
            code: None,
            signal: None,
        }
    }

    /// Whether the command succeeded: it returned 0 by itself.
    #[must_use]
    pub fn is_success(&self) -> bool {
        self.cause == TerminationCause::Exited && self.code == Some(0)
    }

    /// What a shell would show in `$?`: the code, or 128 + n for signal n; 127 where the
    /// program was not found, 126 where it could not be executed, 125 where it was lost.
    #[must_use]
    pub fn shell_status(&self) -> i32 {
        const ENOENT: i32 = 2;
        match (&self.cause, self.code, self.signal) {
            (_, Some(code), _) => code,
            (_, None, Some(signal)) => 128 + signal.number(),
            (
                TerminationCause::SpawnFailed {
                    errno: Some(ENOENT),
                    ..
                },
                ..,
            ) => 127,
            (TerminationCause::SpawnFailed { .. }, ..) => 126,
            _ => 125,
        }
    }

    /// One clause for people, for example `ended by SIGTERM: stopped (asked by the user)`.
    #[must_use]
    pub fn describe(&self) -> String {
        let status = match (self.code, self.signal) {
            (Some(code), _) => format!("exit code {code}"),
            (None, Some(signal)) => format!("ended by {signal}"),
            (None, None) => "no exit status".to_owned(),
        };
        match &self.cause {
            TerminationCause::Exited | TerminationCause::Signaled => status,
            TerminationCause::TimedOut {
                clock: TimeoutKind::Wall,
            } => format!("timed out, {status}"),
            TerminationCause::TimedOut {
                clock: TimeoutKind::Idle,
            } => {
                format!("timed out without output, {status}")
            }
            TerminationCause::Stopped { reason: None } => format!("stopped, {status}"),
            TerminationCause::Stopped {
                reason: Some(reason),
            } => format!("stopped ({reason}), {status}"),
            TerminationCause::OutOfMemory => format!("out of memory, {status}"),
            TerminationCause::SpawnFailed { message, .. } => format!("could not start: {message}"),
            TerminationCause::Lost { reason } => format!("lost: {}", reason.describe()),
        }
    }
}

impl LostReason {
    /// One clause for people.
    #[must_use]
    pub const fn describe(self) -> &'static str {
        match self {
            Self::Reboot => "the machine was restarted while it ran",
            Self::ShimKilled => "its supervisor process was killed, and the command with it",
            Self::NoRecord => "its supervisor process is gone and left no exit record",
            Self::FilesDamaged => "its files were removed or damaged",
            Self::EngineKilled => "the engine that ran it in its own process was killed",
        }
    }
}
