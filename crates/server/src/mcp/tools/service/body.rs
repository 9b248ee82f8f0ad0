//! A service for programs: what structured answers hold.

use std::net::SocketAddr;

use ostler_engine::{Info, ServiceInfo};
use ostler_model::{Port, Timestamp};
use serde::Serialize;

use crate::mcp::tools::command::status::seconds;
use crate::render::{clamped, clean};

/// The most characters of a command.
const COMMAND_CHARS: usize = 200;

/// The most signs that are told.
const SIGNS: usize = 8;

/// One service.
#[derive(Debug, Clone, Default, Serialize)]
pub(in crate::mcp::tools) struct ServiceBody {
    name: String,
    /// The short id of its newest execution; none where it is only defined.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    ports: Vec<PortBody>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pid: Option<u32>,
    command: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    directory: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    started_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration: Option<f64>,
    /// From the second attempt on.
    #[serde(skip_serializing_if = "Option::is_none")]
    attempt: Option<u32>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    evidence: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
    /// What was seen of its health last.
    #[serde(skip_serializing_if = "Option::is_none")]
    health: Option<String>,
    /// How it ended, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    ending: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    /// The `ostler.toml` it stands in, or `api`.
    #[serde(skip_serializing_if = "Option::is_none")]
    defined_in: Option<String>,
    /// The `ostler.toml` of its workspace.
    #[serde(skip_serializing_if = "Option::is_none")]
    workspace: Option<String>,
    /// What it waits for before its program starts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pending: Option<String>,
    /// What deserves to be told besides.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
}

/// One listening port.
#[derive(Debug, Clone, Serialize)]
struct PortBody {
    port: u16,
    address: SocketAddr,
    process: String,
    pid: u32,
    main: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    tls: bool,
}

impl From<&ServiceInfo> for ServiceBody {
    fn from(service: &ServiceInfo) -> Self {
        let seen = service.execution.as_ref().map(Self::from);
        Self {
            name: service.name.clone(),
            status: service.status(),
            command: clamped(&service.command, COMMAND_CHARS),
            defined_in: service.defined_in.clone(),
            workspace: service
                .workspace
                .as_ref()
                .map(|it| it.display().to_string()),
            pending: service.pending.clone(),
            notes: service.notes.clone(),
            ..seen.unwrap_or_default()
        }
    }
}

impl From<&Info> for ServiceBody {
    fn from(info: &Info) -> Self {
        let state = &info.state;
        let ending = state.ending.as_ref();
        let lives = ending.is_none();
        let ports = state.ports.iter().filter(|_| lives);
        let plan = info.spec.lifetime.plan();
        Self {
            name: name(info),
            id: Some(info.id.short()),
            status: info.status().service,
            url: state.url.clone().filter(|_| lives),
            ports: ports.map(PortBody::from).collect(),
            pid: state.pid.filter(|_| lives),
            command: clamped(&info.spec.command.display(), COMMAND_CHARS),
            directory: Some(info.spec.cwd.to_string()),
            started_at: state.started_at.or(state.created_at),
            duration: Some(seconds(info.duration())),
            attempt: (state.attempt > 1).then_some(state.attempt),
            evidence: evidence(info),
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

impl From<&Port> for PortBody {
    fn from(port: &Port) -> Self {
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

/// What to call it in a call: its name, else its short id.
pub(in crate::mcp::tools) fn name(info: &Info) -> String {
    let plan = info.spec.lifetime.plan();
    let named = plan.map(|plan| plan.name.clone());
    named
        .filter(|name| !name.is_empty())
        .unwrap_or_else(|| info.id.short())
}

/// What showed how far it has come, oldest first.
fn evidence(info: &Info) -> Vec<String> {
    let state = &info.state;
    let skipped = state.signs.len().saturating_sub(SIGNS);
    let signs = state.signs.iter().skip(skipped);
    let mut told: Vec<String> = signs.map(|sign| clean(&sign.detail).into_owned()).collect();
    if told.is_empty() {
        told.extend(
            state
                .ready_evidence
                .as_deref()
                .map(|it| clean(it).into_owned()),
        );
    }
    told
}
