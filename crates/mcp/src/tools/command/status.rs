//! Structured results of the status tools.

use ostler_engine::ExecutionInfo;
use ostler_model::Timestamp;
use ostler_model::duration::as_seconds;
use ostler_model::status::ProcessStatus;
use serde::Serialize;

use crate::tools::execution::ServiceToolBody;
use crate::tools::execution::fields::{CommandIsolation, isolation_body, summary_text};

/// The result of `command_bg_start`.
#[derive(Debug, Serialize)]
pub(super) struct StartedBody {
    pid: String,
    status: ProcessStatus,
    os_pid: Option<u32>,
    isolation: CommandIsolation,
    /// The service it runs as, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    service: Option<ServiceToolBody>,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
    next: String,
}

/// One entry of `command_ps_list`.
#[derive(Debug, Serialize)]
pub(super) struct CommandSummary {
    pid: String,
    status: ProcessStatus,
    command: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    description: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    labels: Vec<String>,
    start_time: Option<Timestamp>,
    duration: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_message: Option<String>,
}

/// The result of `command_ps_stop`.
#[derive(Debug, Serialize)]
pub(super) struct StoppedBody {
    pid: String,
    status: ProcessStatus,
    was_running: bool,
    exit_code: Option<i32>,
    signal: Option<String>,
    ending: Option<String>,
    duration: f64,
    /// OS pids that survived the stop; normally empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    survivors: Vec<u32>,
}

impl From<&ExecutionInfo> for StartedBody {
    fn from(info: &ExecutionInfo) -> Self {
        let pid = info.id.short();
        Self {
            status: info.status().process,
            os_pid: info.state.shown_pid(),
            isolation: isolation_body(&info.spec),
            service: None,
            note: None,
            next: format!("read its output with command_ps_logs, pid {pid}"),
            pid,
        }
    }
}

impl StartedBody {
    /// The result for a command started as a service, with the reason.
    pub(super) fn for_service(info: &ExecutionInfo, note: Option<String>) -> Self {
        Self {
            service: Some(ServiceToolBody::from(info)),
            note,
            ..Self::from(info)
        }
    }
}

impl From<&ExecutionInfo> for CommandSummary {
    fn from(info: &ExecutionInfo) -> Self {
        let ending = info.state.ending.as_ref();
        Self {
            pid: info.id.short(),
            status: info.status().process,
            command: summary_text(&info.spec.command.display()),
            description: summary_text(&info.spec.description),
            labels: info.spec.labels.clone(),
            start_time: info.state.started_at.or(info.state.created_at),
            duration: as_seconds(info.duration()),
            exit_code: ending.and_then(|ending| ending.code),
            error_message: info.error_message(),
        }
    }
}

impl StoppedBody {
    pub(super) fn new(info: &ExecutionInfo, was_running: bool) -> Self {
        let ending = info.state.ending.as_ref();
        Self {
            pid: info.id.short(),
            status: info.status().process,
            was_running,
            exit_code: ending.and_then(|ending| ending.code),
            signal: ending.and_then(|ending| ending.signal).map(|s| s.name()),
            ending: ending.map(|ending| ending.describe()),
            duration: as_seconds(info.duration()),
            survivors: info.survivors.clone(),
        }
    }
}
