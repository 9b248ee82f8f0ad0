//! The fields of a process, shared by the tools of this profile.

use ostler_engine::ExecutionInfo;
use ostler_model::Timestamp;
use serde::Serialize;

use crate::tools::execution::fields::summary_text;
use ostler_interface::params::{Parameter, ParameterKind};

/// The parameter `process_id`.
pub(super) const PROCESS_ID: Parameter = Parameter::required(
    "process_id",
    ParameterKind::Text,
    "Process ID returned by execute_shell (async mode)",
);
/// The streams of a process.
pub(super) const STREAMS: ParameterKind = ParameterKind::Choice(&["stdout", "stderr"]);
/// The most lines of one answer; larger requests are reduced to it.
pub(super) const LINES_LIMIT: i64 = 100;

/// The fields of a process in every answer.
#[derive(Debug, Serialize)]
pub(super) struct ShellProcess {
    process_id: String,
    command: String,
    /// `starting`, `running`, `finished`, `failed` or `killed`.
    status: &'static str,
    /// The OS pid of its shell.
    pid: Option<u32>,
    started_at: Option<Timestamp>,
    exit_code: Option<i32>,
}

/// How it ended, besides its exit code.
#[derive(Debug, Serialize)]
pub(super) struct EndedInfo {
    finished_at: Option<Timestamp>,
    /// Set where a signal ended it.
    #[serde(skip_serializing_if = "Option::is_none")]
    signal: Option<String>,
    /// Why it did not end successfully.
    #[serde(skip_serializing_if = "Option::is_none")]
    error_message: Option<String>,
}

impl From<&ExecutionInfo> for ShellProcess {
    fn from(info: &ExecutionInfo) -> Self {
        let ending = info.state.ending.as_ref();
        Self {
            process_id: info.id.short(),
            command: summary_text(&info.spec.command.display()),
            status: info.status().shell,
            pid: info.state.shown_pid(),
            started_at: info.state.started_at.or(info.state.created_at),
            exit_code: ending.and_then(|ending| ending.code),
        }
    }
}

impl From<&ExecutionInfo> for EndedInfo {
    fn from(info: &ExecutionInfo) -> Self {
        let ending = info.state.ending.as_ref();
        Self {
            finished_at: info.state.ended_at,
            signal: ending.and_then(|ending| ending.signal).map(|it| it.name()),
            error_message: info.error_message(),
        }
    }
}
