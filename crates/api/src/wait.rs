//! Waiting for an execution, stopping it, signalling it, feeding it.

use ostler_model::{ByteString, Cursor, QuestionKind, Signal, StreamName, Timestamp};
use serde::{Deserialize, Serialize};

use super::info::ExecutionBody;

/// `POST /api/v1/executions/{id}/wait`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WaitBody {
    /// What to wait for.
    #[serde(default)]
    pub until: WaitUntil,
    /// With `pattern`: a Perl-style expression that a line must match.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
    /// With `idle`: milliseconds without output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_ms: Option<u64>,
    /// At most this many milliseconds; then the answer is `at_most` and nothing is ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_most_ms: Option<u64>,
}

/// What to wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitUntil {
    /// Its end.
    #[default]
    Exit,
    /// A matching line, or its end.
    Pattern,
    /// No output for a while, or its end.
    Idle,
    /// A question of the command, or its end.
    Prompt,
    /// A service is ready, shows that it will not be, or an attempt of it ended.
    Ready,
}

/// How a wait was over.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WaitResponse {
    /// Why: `exit`, `pattern`, `ready`, `not_ready`, `output`, `idle`, `prompt`, `at_most` or
    /// `nothing`.
    pub why: WaitEndKind,
    /// With `not_ready`: what was seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// The line that matched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matched: Option<LineMatchBody>,
    /// The question the command waits with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<PromptBody>,
    /// What was known then.
    pub info: ExecutionBody,
    /// The position up to which the wait looked.
    pub cursor: Cursor,
}

/// Why a wait was over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitEndKind {
    /// It ended.
    Exit,
    /// A line matched.
    Pattern,
    /// The service is ready, or running with nothing to look at.
    Ready,
    /// The service will not become ready as it is.
    NotReady,
    /// There is output after the position asked.
    Output,
    /// There was no output for the time asked.
    Idle,
    /// The command waits for an answer.
    Prompt,
    /// The time ran out; it goes on.
    #[serde(rename = "at_most")]
    TimedOut,
    /// Nothing was waited for.
    Nothing,
}

/// A line that matched.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LineMatchBody {
    /// When its first byte came.
    pub at: Timestamp,
    /// Which stream it came on.
    pub stream: StreamName,
    /// Its number within its stream.
    pub number: u64,
    /// The line without its end.
    pub line: ByteString,
}

/// A command's question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptBody {
    /// Its last line as the command wrote it.
    pub text: String,
    /// Whether the answer must not be shown.
    pub secret: bool,
    /// What kind of answer is wanted.
    pub kind: QuestionKind,
    /// What there is to choose from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
    /// What an empty answer stands for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    /// The OS pid of the process that waits.
    pub pid: u32,
}

/// `POST …/stop`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StopBody {
    /// At once, without grace.
    #[serde(default)]
    pub force: bool,
    /// Milliseconds between the polite request and the kill.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grace_ms: Option<u64>,
    /// Recorded with the stop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// `POST …/signal`: a name such as `TERM` or `SIGTERM`, or a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SignalBody {
    /// The signal.
    #[serde(deserialize_with = "signal")]
    pub signal: Signal,
}

/// What became of input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputResponse {
    /// Bytes the command's input took.
    pub taken: u64,
}

/// Output dropped on request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClearOutputResponse {
    /// Bytes.
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
