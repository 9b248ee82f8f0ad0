//! Structured results of the status tools.

use std::time::Duration;

use ostler_api::NetworkBody;
use ostler_engine::ExecutionInfo;
use ostler_model::status::ProcessStatus;
use ostler_model::{Capability, IsolationLevel, IsolationSpec, Timestamp};
use ostler_render::isolation::describe_missing;
use ostler_render::truncated;
use serde::Serialize;

use crate::convert::millis_as_seconds;
use crate::mcp::tools::service::ServiceToolBody;

/// The most characters of a command or description in a list.
const SUMMARY_CHARS: usize = 200;

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

/// Isolation: requested, in force, missing.
#[derive(Debug, Serialize)]
pub(in crate::mcp::tools) struct CommandIsolation {
    #[serde(rename = "asked")]
    requested: IsolationLevel,
    in_force: Vec<Capability>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    missing: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    network: Option<NetworkBody>,
}

impl From<&ExecutionInfo> for StartedBody {
    fn from(info: &ExecutionInfo) -> Self {
        let pid = info.id.short();
        Self {
            status: info.status().process,
            os_pid: info.state.pid,
            isolation: isolation_body(&info.spec.policy),
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
            command: shorten(&info.spec.command.display()),
            description: shorten(&info.spec.description),
            labels: info.spec.labels.clone(),
            start_time: info.state.started_at.or(info.state.created_at),
            duration: seconds(info.duration()),
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
            duration: seconds(info.duration()),
            survivors: info.survivors.clone(),
        }
    }
}

/// The requested and the actual isolation.
pub(in crate::mcp::tools) fn isolation_body(policy: &IsolationSpec) -> CommandIsolation {
    CommandIsolation {
        requested: policy.level,
        in_force: policy.in_force.clone(),
        missing: policy
            .missing
            .iter()
            .map(|it| describe_missing(std::slice::from_ref(it)))
            .collect(),
        network: policy
            .confinement
            .as_ref()
            .map(|it| NetworkBody(it.network.clone())),
    }
}

/// Seconds, rounded to a millisecond.
pub(in crate::mcp::tools) fn seconds(duration: Duration) -> f64 {
    millis_as_seconds(duration)
}

fn shorten(text: &str) -> String {
    truncated(text, SUMMARY_CHARS)
}
