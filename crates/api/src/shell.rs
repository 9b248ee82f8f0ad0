//! Shell sessions: a shell that tells where commands begin and end.

use ostler_model::{ByteString, ExecutionId, InputId, IsolationLevel, Limits, ShellKind, TermSize};
use serde::{Deserialize, Serialize};

use super::info::ExecutionBody;
use super::sandbox::SandboxOptionsBody;
use super::start::{RetentionBody, strict};
use super::wait::PromptBody;

/// `POST /api/v1/shells`: starts an integrated shell in a terminal. Only `kind` and `cwd` must
/// be given; durations are milliseconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShellStartBody {
    /// The id it gets, a `UUIDv7` of about now; absent has the daemon choose one. The same start
    /// sent again with it answers what the first one began: after a lost answer, also to the
    /// next daemon.
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
    /// The environment of the asking front.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub base_env: Vec<(ByteString, ByteString)>,
    /// Variables added or replaced.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<(ByteString, ByteString)>,
    /// Whether all of `base_env` is passed on; absent takes the daemon's setting.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inherit_env: Option<bool>,
    /// Wall-clock limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// How far it is walled off; absent takes the daemon's setting.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub isolation: Option<IsolationLevel>,
    /// What level high shows and reaches beyond its defaults.
    #[serde(default)]
    pub confine: SandboxOptionsBody,
    /// Limits of its tree.
    #[serde(default, deserialize_with = "strict::limits")]
    pub limits: Limits,
    /// Names of secrets whose values go into the environment under the same names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<String>,
    /// The approval a person gave when the command policy asked: the interaction's id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<String>,
    /// For filtering.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
    /// What to call it, for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// How long it is kept after its end.
    #[serde(default)]
    pub retention: RetentionBody,
    /// Whether it outlives its session.
    #[serde(default)]
    pub keep: bool,
    /// The only programs that may run, besides what the daemon's own list says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed: Option<Vec<String>>,
    /// Whether the command line asks (it keeps its executions longer than other clients).
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
    /// The size of a terminal nobody named one for.
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
    /// What to type; may have several lines.
    pub script: String,
    /// How long to wait for its end, in milliseconds; the command goes on after that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_most_ms: Option<u64>,
    /// What the client calls it, a UUID of its choice. The same command sent again with it, after a
    /// lost answer, is not typed again: its end is waited for, also by the next daemon.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<InputId>,
    /// Whether it is sent again. Where it cannot be known whether it was typed before (its
    /// shell has ended), it is refused then with `process_timeout`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub again: bool,
}

/// What became of it. Its output is `[from, to)` of the session's raw output.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ShellRunResponse {
    /// How the wait was over.
    pub end: ShellRunOutcomeBody,
    /// Where the command's output begins.
    pub from: u64,
    /// Where it ends, as far as it is known.
    pub to: u64,
    /// The session.
    pub info: ExecutionBody,
}

/// How a wait for a command in a shell was over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "why", rename_all = "snake_case")]
pub enum ShellRunOutcomeBody {
    /// It ended, and the shell told how.
    Finished {
        /// Its exit status.
        status: i32,
        /// The shell's working directory now, as it told.
        cwd: Option<String>,
    },
    /// It waits for an answer.
    Prompt {
        /// The question.
        prompt: PromptBody,
    },
    /// The shell wants more of the command.
    Incomplete,
    /// The shell reads again, but did not tell that the command ended.
    Silent,
    /// The shell is gone.
    ShellEnded,
    /// The time ran out; the command goes on.
    #[serde(rename = "at_most")]
    TimedOut,
}
