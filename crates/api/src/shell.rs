//! Shell sessions: shells that report where commands start and end.

use ostler_model::{ByteString, ExecutionId, InputId, IsolationLevel, Limits, ShellKind, TermSize};
use serde::{Deserialize, Serialize};

use super::info::ExecutionBody;
use super::sandbox::SandboxOptionsBody;
use super::start::{RetentionBody, strict};
use super::wait::PromptBody;

/// `POST /api/v1/shells`: starts an integrated shell in a terminal. Only `kind` and `cwd` are
/// required; durations are milliseconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
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
    /// Environment variables added or replaced.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<(ByteString, ByteString)>,
    /// Whether all of `base_env` is passed on; absent means the daemon's setting.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inherit_env: Option<bool>,
    /// The wall-clock limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// The isolation level; absent means the daemon's setting.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub isolation: Option<IsolationLevel>,
    /// Isolation options beyond the defaults of level high.
    #[serde(default)]
    pub confine: SandboxOptionsBody,
    /// The limits of its tree.
    #[serde(default, deserialize_with = "strict::limits")]
    pub limits: Limits,
    /// Names of secrets whose values go into the environment under the same names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<String>,
    /// The id of the interaction in which a person gave approval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<String>,
    /// Labels, by which lists can be filtered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
    /// A description for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// How long it is kept after its end.
    #[serde(default)]
    pub retention: RetentionBody,
    /// Whether it outlives its session.
    #[serde(default)]
    pub keep: bool,
    /// The only programs that may run, in addition to the daemon's own allow list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed: Option<Vec<String>>,
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
            env: Vec::new(),
            inherit_env: None,
            timeout_ms: None,
            isolation: None,
            confine: SandboxOptionsBody::default(),
            limits: Limits::default(),
            secrets: Vec::new(),
            approval: None,
            labels: Vec::new(),
            description: String::new(),
            retention: RetentionBody::Default,
            keep: false,
            allowed: None,
            cli: false,
        }
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
