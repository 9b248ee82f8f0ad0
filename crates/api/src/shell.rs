//! Shell sessions: shells that report where commands start and end.

use ostler_model::{ByteString, ExecutionId, InputId, ShellKind, StartOptions, TermSize};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::info::ExecutionBody;
use super::parts::{OptionsPlace, OwnFields};
use super::wait::PromptBody;

/// Options that a shell session does not take: it lives until it is closed, and its terminal has
/// fields of its own.
const NOT_FOR_SHELLS: &[&str] = &["idle_ms", "place_wait_ms", "encoding", "pty"];

/// `POST /api/v1/shells`: starts an integrated shell in a terminal. Only `kind` and `cwd` are
/// required; durations are milliseconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct ShellStartBody {
    /// The id to use, a `UUIDv7` of about now; absent means that the daemon chooses one. Repeating
    /// a start with its id returns what the first request started: for retries after a lost
    /// response, also to the next daemon.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<ExecutionId>,
    /// `bash`, `zsh` or `fish`.
    pub kind: ShellKind,
    /// The absolute working directory.
    pub cwd: ByteString,
    /// Columns of its terminal.
    #[serde(default = "cols")]
    pub cols: u16,
    /// Rows of its terminal.
    #[serde(default = "rows")]
    pub rows: u16,
    /// The environment of the requesting client.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub base_env: Vec<(ByteString, ByteString)>,
    /// What every start may ask for, as fields of this object.
    #[serde(flatten, skip_deserializing)]
    pub options: StartOptions,
    /// Whether the client is the command line (its executions are kept longer than others).
    #[serde(default)]
    pub cli: bool,
}

const fn cols() -> u16 {
    ShellStartBody::SIZE.cols
}

const fn rows() -> u16 {
    ShellStartBody::SIZE.rows
}

impl ShellStartBody {
    /// The default size of a terminal.
    pub const SIZE: TermSize = TermSize { cols: 80, rows: 24 };

    /// A request with every default.
    #[must_use]
    pub fn new(kind: ShellKind, cwd: impl Into<ByteString>) -> Self {
        Self {
            id: None,
            kind,
            cwd: cwd.into(),
            cols: Self::SIZE.cols,
            rows: Self::SIZE.rows,
            base_env: Vec::new(),
            options: StartOptions::default(),
            cli: false,
        }
    }
}

impl Serialize for ShellStartBody {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        Self::serialize(self, to)
    }
}

impl<'de> Deserialize<'de> for ShellStartBody {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let place = OptionsPlace {
            after: "base_env",
            without: NOT_FOR_SHELLS,
        };
        let mut options = StartOptions::default();
        let body = Self::deserialize(OwnFields::new(from, place, &mut options))?;
        Ok(Self { options, ..body })
    }
}

/// `POST …/shell/run`: types a command and waits for its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShellRunBody {
    /// The script to type; it may have several lines.
    pub script: String,
    /// How long to wait for its end, in milliseconds; the command continues after that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_most_ms: Option<u64>,
    /// An idempotency key, a UUID chosen by the client. Repeating the command with it, after a lost
    /// response, does not type it again: its end is waited for, also by the next daemon.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<InputId>,
    /// Whether this is a retry. Where it is unknown whether the command was typed before (its shell
    /// has ended), the retry is refused with `process_timeout`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub again: bool,
}

/// The outcome of a run. Its output is `[from, to)` of the session's raw output.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ShellRunResponse {
    /// The outcome of the wait.
    pub end: ShellRunOutcomeBody,
    /// The start of the command's output.
    pub from: u64,
    /// The end of its output, as far as it is known.
    pub to: u64,
    /// The state of the session.
    pub info: ExecutionBody,
}

/// The outcome of a wait for a command in a shell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "why", rename_all = "snake_case")]
pub enum ShellRunOutcomeBody {
    /// It ended, and the shell reported its status.
    Finished {
        /// The command's exit status.
        status: i32,
        /// The shell's present working directory, as it reported.
        cwd: Option<String>,
    },
    /// It waits for input at a prompt.
    Prompt {
        /// The detected prompt.
        prompt: PromptBody,
    },
    /// The shell expects more of the command.
    Incomplete,
    /// The shell reads again, but did not report the command's end.
    Silent,
    /// The shell has ended.
    ShellEnded,
    /// The time is over; the command continues.
    #[serde(rename = "at_most")]
    TimedOut,
}
