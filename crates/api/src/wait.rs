//! Waiting for an execution, stopping it, signalling it, writing its input.

use ostler_model::{ByteString, Cursor, QuestionKind, Signal, StreamName, Timestamp};
use serde::{Deserialize, Serialize};

use super::info::ExecutionBody;
use super::problem::CodeName;

/// The body of `POST /api/v1/executions/{id}/wait`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WaitBody {
    /// The condition.
    #[serde(default)]
    pub until: WaitUntil,
    /// With `pattern`: a Perl-style expression that a line must match.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
    /// With `idle`: milliseconds without output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_ms: Option<u64>,
    /// The timeout in milliseconds; then the outcome is `at_most` and nothing is ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_most_ms: Option<u64>,
}

/// The condition of a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitUntil {
    /// The end of the execution.
    #[default]
    Exit,
    /// A matching line, or its end.
    Pattern,
    /// No output for a while, or its end.
    Idle,
    /// A prompt of the command, or its end.
    Prompt,
    /// A service is ready, cannot become ready, or an attempt of it ended.
    Ready,
}

/// The outcome of a wait.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WaitResponse {
    /// Why: `exit`, `pattern`, `ready`, `not_ready`, `output`, `idle`, `prompt`, `at_most` or
    /// `nothing`.
    pub why: WaitEndKind,
    /// With `not_ready`: the last observation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// The line that matched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matched: Option<LineMatchBody>,
    /// The prompt the command waits at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<PromptBody>,
    /// What the outcome is to one who needs the end of the execution: `process_timeout` where the
    /// time is over and it continues, `command_timeout` where its own time limit ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<WaitErrorBody>,
    /// The state at that time.
    pub info: ExecutionBody,
    /// The output position up to which the wait searched.
    pub cursor: Cursor,
}

/// The error that a wait ended with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitErrorBody {
    /// The stable code.
    pub code: CodeName,
    /// The problem, for people.
    pub message: String,
    /// Whether the same wait may succeed later.
    pub retryable: bool,
}

/// Why a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitEndKind {
    /// The execution ended.
    Exit,
    /// A line matched.
    Pattern,
    /// The service is ready, or running without a readiness check.
    Ready,
    /// The service cannot become ready.
    NotReady,
    /// There is output after the requested position.
    Output,
    /// There was no output for the requested time.
    Idle,
    /// The command waits for input at a prompt.
    Prompt,
    /// The time is over; the execution continues.
    #[serde(rename = "at_most")]
    TimedOut,
    /// The request had no condition.
    Nothing,
}

/// A line that matched.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LineMatchBody {
    /// When its first byte was read.
    pub at: Timestamp,
    /// The stream it was read from.
    pub stream: StreamName,
    /// Its number within its stream.
    pub number: u64,
    /// The line without its terminator.
    pub line: ByteString,
}

/// A prompt of a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptBody {
    /// Its last line as the command wrote it.
    pub text: String,
    /// Whether the answer must not be shown.
    pub secret: bool,
    /// The kind of answer required.
    pub kind: QuestionKind,
    /// The options.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
    /// The meaning of an empty answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    /// The OS pid of the process that waits.
    pub pid: u32,
}

/// The body of `POST …/stop`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StopBody {
    /// Kill at once, without a grace period.
    #[serde(default)]
    pub force: bool,
    /// Grace period between SIGTERM and SIGKILL, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grace_ms: Option<u64>,
    /// The reason to record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// `POST …/signal`: a name such as `TERM` or `SIGTERM`, or a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SignalBody {
    /// The signal's name or number.
    #[serde(deserialize_with = "signal")]
    pub signal: Signal,
}

/// The outcome of writing input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputResponse {
    /// Bytes the command's input accepted.
    pub taken: u64,
}

/// Output dropped on request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClearOutputResponse {
    /// The number of bytes dropped.
    pub dropped_bytes: u64,
}

fn signal<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Signal, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "a signal's name or number")]
    enum SignalNumberOrName {
        Number(i32),
        Name(String),
    }
    let parsed = match SignalNumberOrName::deserialize(deserializer)? {
        SignalNumberOrName::Number(number) => Signal::try_from(number),
        SignalNumberOrName::Name(name) => name.parse(),
    };
    parsed.map_err(serde::de::Error::custom)
}
