//! The state of a shell, folded from its marks.

use serde::{Deserialize, Serialize};

use crate::control_sequences::{ControlEvent, LocatedEvent};

/// The state of an integrated shell.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum ShellState {
    /// It has printed no mark yet.
    #[default]
    Unknown,
    /// A command ended, and the prompt is not shown yet: the user's own hooks run, or the next of
    /// several lines that were typed together.
    Ended {
        /// The offset where the last command's output ended.
        #[serde(default)]
        since: u64,
        /// Its exit status; none before the first command.
        #[serde(default)]
        status: Option<i32>,
        /// The shell's working directory, as last reported.
        #[serde(default)]
        cwd: Option<String>,
    },
    /// It shows a prompt and accepts a command.
    Prompt {
        /// The offset where the last command's output ended, if there was one.
        #[serde(default)]
        since: u64,
        /// The exit status of the last command.
        #[serde(default)]
        status: Option<i32>,
        /// Its working directory, as last reported.
        #[serde(default)]
        cwd: Option<String>,
    },
    /// It shows a continuation prompt: the command that was typed is incomplete.
    Incomplete {
        /// Its working directory, as last reported.
        #[serde(default)]
        cwd: Option<String>,
    },
    /// A command runs.
    Running {
        /// The offset where its output begins.
        since: u64,
        /// The shell's working directory when it started.
        #[serde(default)]
        cwd: Option<String>,
    },
}

impl ShellState {
    /// Applies one event; a mark that is not believed changes nothing. OSC 7 carries no nonce: a
    /// directory is believed only between the end of a command and the prompt, while no command
    /// runs.
    pub fn apply(&mut self, event: &LocatedEvent) {
        match &event.event {
            ControlEvent::CommandEnd {
                is_trusted: true,
                status,
            } => self.on_command_end(event.from, *status),
            ControlEvent::PromptStart {
                is_trusted: true,
                continuation: false,
            } => self.on_prompt(event.from),
            ControlEvent::PromptStart {
                is_trusted: true,
                continuation: true,
            } => {
                *self = Self::Incomplete {
                    cwd: self.take_cwd(),
                }
            }
            ControlEvent::CommandStart { is_trusted: true } => {
                *self = Self::Running {
                    since: event.to,
                    cwd: self.take_cwd(),
                }
            }
            ControlEvent::Directory(path) => {
                if let Self::Ended { cwd, .. } = self {
                    *cwd = Some(String::from_utf8_lossy(path).into_owned());
                }
            }
            ControlEvent::PromptStart {
                is_trusted: false, ..
            }
            | ControlEvent::PromptEnd { .. }
            | ControlEvent::CommandStart { is_trusted: false }
            | ControlEvent::CommandEnd {
                is_trusted: false, ..
            }
            | ControlEvent::Title(_)
            | ControlEvent::Modes(_) => {}
        }
    }

    /// The shell's working directory, as last reported.
    #[must_use]
    pub fn cwd(&self) -> Option<&str> {
        match self {
            Self::Unknown => None,
            Self::Ended { cwd, .. }
            | Self::Prompt { cwd, .. }
            | Self::Incomplete { cwd }
            | Self::Running { cwd, .. } => cwd.as_deref(),
        }
    }

    /// Handles the end of a command. The mark comes before every prompt, also where nothing ran:
    /// then only the status may be new (a syntax error), not the position.
    fn on_command_end(&mut self, at: u64, status: Option<i32>) {
        let (since, last) = match self {
            Self::Ended { since, status, .. } | Self::Prompt { since, status, .. } => {
                (*since, *status)
            }
            Self::Unknown | Self::Incomplete { .. } | Self::Running { .. } => (at, None),
        };
        *self = Self::Ended {
            since,
            status: status.or(last),
            cwd: self.take_cwd(),
        };
    }

    /// Handles a prompt. Without an end mark before it, the command's exit status is unknown.
    fn on_prompt(&mut self, at: u64) {
        let (since, status) = match self {
            Self::Ended { since, status, .. } | Self::Prompt { since, status, .. } => {
                (*since, *status)
            }
            Self::Unknown | Self::Incomplete { .. } | Self::Running { .. } => (at, None),
        };
        *self = Self::Prompt {
            since,
            status,
            cwd: self.take_cwd(),
        };
    }

    fn take_cwd(&mut self) -> Option<String> {
        match self {
            Self::Unknown => None,
            Self::Ended { cwd, .. }
            | Self::Prompt { cwd, .. }
            | Self::Incomplete { cwd }
            | Self::Running { cwd, .. } => cwd.take(),
        }
    }
}
