//! A service in structured content.

use std::net::SocketAddr;

use ostler_engine::{ExecutionInfo, ServiceInfo};
use ostler_model::duration;
use ostler_model::{ServicePort, State, Timestamp};
use ostler_render::{clean, truncated};
use serde::Serialize;

/// The most characters of a command.
const COMMAND_CHARS: usize = 200;

/// The most characters of a prompt.
const PROMPT_CHARS: usize = 200;

/// The most readiness signals shown.
const MAX_SIGNALS: usize = 8;

/// One service.
#[derive(Debug, Clone, Default, Serialize)]
pub(in crate::tools) struct ServiceToolBody {
    name: String,
    /// The short id of its newest execution; none where it is only defined.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    ports: Vec<ServicePortBody>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pid: Option<u32>,
    /// Whether its processes stand still until it is resumed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    paused: bool,
    /// The prompt at which it waits for input.
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt: Option<String>,
    command: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    directory: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    started_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration: Option<f64>,
    /// The attempt, from the second on.
    #[serde(skip_serializing_if = "Option::is_none")]
    attempt: Option<u32>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    evidence: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
    /// The last health state.
    #[serde(skip_serializing_if = "Option::is_none")]
    health: Option<String>,
    /// How it ended, as text.
    #[serde(skip_serializing_if = "Option::is_none")]
    ending: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    /// The `ostler.toml` that defines it, or `api`.
    #[serde(skip_serializing_if = "Option::is_none")]
    defined_in: Option<String>,
    /// The `ostler.toml` of its workspace.
    #[serde(skip_serializing_if = "Option::is_none")]
    workspace: Option<String>,
    /// The condition it waits for before its program starts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pending: Option<String>,
    /// Additional notes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
}

/// One listening port.
#[derive(Debug, Clone, Serialize)]
struct ServicePortBody {
    port: u16,
    address: SocketAddr,
    process: String,
    pid: u32,
    main: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    tls: bool,
}

impl From<&ServiceInfo> for ServiceToolBody {
    fn from(service: &ServiceInfo) -> Self {
        let execution_body = service.execution.as_ref().map(Self::from);
        Self {
            name: service.name.clone(),
            status: service.status(),
            command: truncated(&service.command, COMMAND_CHARS),
            defined_in: service.defined_in.clone(),
            workspace: service
                .workspace
                .as_ref()
                .map(|it| it.display().to_string()),
            pending: service.pending.clone(),
            notes: service.notes.clone(),
            ..execution_body.unwrap_or_default()
        }
    }
}

/// The prompt at which it waits for input, where that has a text.
fn prompt_text(state: &State) -> Option<String> {
    let prompt = state.prompt.as_deref().map(clean)?;
    (!prompt.trim().is_empty()).then(|| truncated(&prompt, PROMPT_CHARS))
}

impl From<&ExecutionInfo> for ServiceToolBody {
    fn from(info: &ExecutionInfo) -> Self {
        let state = &info.state;
        let ending = state.ending.as_ref();
        let is_alive = ending.is_none();
        let ports = state.ports.iter().filter(|_| is_alive);
        let plan = info.spec.lifetime.plan();
        Self {
            name: call_name(info),
            id: Some(info.id.short()),
            status: info.status().service,
            url: state.url.clone().filter(|_| is_alive),
            ports: ports.map(ServicePortBody::from).collect(),
            pid: state.shown_pid().filter(|_| is_alive),
            paused: state.paused,
            prompt: prompt_text(state),
            command: truncated(&info.spec.command.display(), COMMAND_CHARS),
            directory: Some(info.spec.cwd.to_string()),
            started_at: state.started_at.or(state.created_at),
            duration: Some(duration::as_seconds(info.duration())),
            attempt: (state.attempt > 1).then_some(state.attempt),
            evidence: readiness_evidence(info),
            warnings: state.warnings.clone(),
            health: state.health.clone(),
            ending: ending.map(|ending| ending.describe()),
            exit_code: ending.and_then(|ending| ending.code),
            defined_in: plan.and_then(|plan| plan.defined_in.as_ref().map(ToString::to_string)),
            workspace: None,
            pending: None,
            notes: Vec::new(),
        }
    }
}

impl From<&ServicePort> for ServicePortBody {
    fn from(port: &ServicePort) -> Self {
        Self {
            port: port.address.port(),
            address: port.address,
            process: port.process.clone(),
            pid: port.pid,
            main: port.main,
            tls: port.tls,
        }
    }
}

/// The name to use in calls: its name, else its short id.
pub(in crate::tools) fn call_name(info: &ExecutionInfo) -> String {
    let plan = info.spec.lifetime.plan();
    let name = plan.map(|plan| plan.name.clone());
    name.filter(|name| !name.is_empty())
        .unwrap_or_else(|| info.id.short())
}

/// The evidence of its readiness, oldest first.
fn readiness_evidence(info: &ExecutionInfo) -> Vec<String> {
    let state = &info.state;
    let skipped = state.signs.len().saturating_sub(MAX_SIGNALS);
    let signs = state.signs.iter().skip(skipped);
    let mut details: Vec<String> = signs.map(|sign| clean(&sign.detail).into_owned()).collect();
    if details.is_empty() {
        details.extend(
            state
                .ready_evidence
                .as_deref()
                .map(|it| clean(it).into_owned()),
        );
    }
    details
}
