//! How an execution ended.

use serde::{Deserialize, Serialize};

use crate::signal::Signal;

/// The timeouts of an execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimeoutKind {
    /// The timeout of the whole run.
    Wall,
    /// The timeout without output.
    Idle,
}

/// Why the wait status of a process is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LostReason {
    /// The machine was restarted while it ran.
    Reboot,
    /// Its shim was killed, and the remaining process tree was killed after it.
    ShimKilled,
    /// The shim is gone and left neither an exit record nor processes.
    NoRecord,
    /// Its directory or files were removed or damaged from outside.
    FilesDamaged,
    /// The engine ran without a zygote and was itself killed.
    EngineKilled,
    /// Its container was stopped or removed by somebody else, and every process in it was killed.
    ContainerGone,
}

/// The cause of a termination. Closed: every interface maps all of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum TerminationCause {
    /// The command exited by itself.
    Exited,
    /// A signal that the engine did not send ended it.
    Signaled,
    /// A timeout expired, and its process tree was killed.
    TimedOut {
        /// The timeout.
        clock: TimeoutKind,
    },
    /// A stop was requested.
    Stopped {
        /// The reason the caller gave.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// The kernel's out-of-memory killer or a memory limit killed it.
    OutOfMemory,
    /// It never started.
    SpawnFailed {
        /// The step that failed, for example `exec`.
        step: String,
        /// The kernel's error number, where there is one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        errno: Option<i32>,
        /// The error, as text.
        message: String,
    },
    /// Its end is unknown; never reported as exit code 0.
    Lost {
        /// Why it is unknown.
        reason: LostReason,
    },
}

impl TerminationCause {
    /// Its `kind` in JSON.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Exited => "exited",
            Self::Signaled => "signaled",
            Self::TimedOut { .. } => "timed_out",
            Self::Stopped { .. } => "stopped",
            Self::OutOfMemory => "out_of_memory",
            Self::SpawnFailed { .. } => "spawn_failed",
            Self::Lost { .. } => "lost",
        }
    }
}

/// How an execution ended: `{cause, code?, signal?}`. At most one of code and signal is set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Termination {
    /// The cause.
    pub cause: TerminationCause,
    /// The command's exit code, 0 to 255, where it exited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<i32>,
    /// The signal that ended it, where one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<Signal>,
}

/// The wait status of an attempt's leader, as waitid(2) reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitStatus {
    /// It exited with this code.
    Code(i32),
    /// It was killed by this signal.
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
    /// A termination with a wait status.
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

    /// A termination without a wait status: `SpawnFailed`, `Lost`.
    #[must_use]
    pub const fn without_status(cause: TerminationCause) -> Self {
        Self {
            cause,
            code: None,
            signal: None,
        }
    }

    /// Whether the command succeeded: it exited with 0 by itself.
    #[must_use]
    pub fn is_success(&self) -> bool {
        self.cause == TerminationCause::Exited && self.code == Some(0)
    }

    /// What a shell would show in `$?`: the code, or 128 + n for signal n; 127 where the program
    /// was not found, 126 where it could not be executed, 125 where it was lost.
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
            Self::ShimKilled => {
                "its supervisor process was killed, and what was found of the command with it"
            }
            Self::NoRecord => "its supervisor process is gone and left no exit record",
            Self::FilesDamaged => "its files were removed or damaged",
            Self::EngineKilled => "the engine that ran it in its own process was killed",
            Self::ContainerGone => {
                "its container, or its supervisor in it, was killed, and the command with it"
            }
        }
    }
}
