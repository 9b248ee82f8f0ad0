//! Services: what is defined, what lives, how far it is.

use ostler_engine::detection::DetectedService;
use ostler_engine::{EnsureResult, ExecutionInfo, ServiceInfo, ServiceStopped, WaitEnd};
use ostler_model::{
    ByteString, Dependency, Lifetime, Phase, PortHolder, ReadinessSignal, ServiceKind, ServicePlan,
    ServicePort, ServiceStage, Timestamp,
};
use serde::{Deserialize, Serialize};

use super::info::ExecutionBody;
use super::service_request::ProbeBody;
use super::wait::{WaitEndKind, WaitUntil};
use crate::service_report::waits_for;
use ostler_render::service::{self as words, ServiceReport};

/// What is known of an execution as a service.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ServiceStateBody {
    /// What it is called; the short id where it has no name.
    pub name: String,
    /// `pending`, `start_params`, `listening`, `responding`, `wait`, `wait_running`, `degraded`,
    /// `stopping`, `stopped`, `failed` or `crash_looping`.
    pub status: String,
    /// How far the newest attempt has come; null before its first sign of life.
    pub stage: Option<ServiceStage>,
    /// Where it is reached.
    pub url: Option<String>,
    /// What it listens on.
    pub ports: Vec<PortInfoBody>,
    /// What showed it ready, as one sentence.
    pub evidence: Option<String>,
    /// What was seen, oldest first.
    pub signs: Vec<ReadinessSignal>,
    /// What deserves a warning.
    pub warnings: Vec<String>,
    /// What was seen of its health last; null where nothing was.
    pub health: Option<ServiceHealthBody>,
    /// Attempts after the first.
    pub restarts: u32,
    /// When the next attempt begins, between two.
    pub backoff_until: Option<Timestamp>,
    /// How the attempt before ended, in words.
    pub last_end: Option<String>,
    /// What it waits for on its way to ready; null once it is there and after its end.
    pub waits_for: Option<String>,
    /// When it is ready.
    pub ready_when: ProbeBody,
    /// How long a wait for it takes unless told otherwise, in milliseconds.
    pub ready_timeout_ms: u64,
    /// The entry of the detection table it was recognised by.
    pub detected: Option<String>,
    /// Whether nobody asked for a service: its command looks like one.
    pub automatic: bool,
    /// The port leased to it.
    pub leased_port: Option<u16>,
    /// What comes before it.
    pub depends_on: Vec<Dependency>,
    /// Where its definition stands.
    pub defined_in: Option<ByteString>,
}

/// A port a service listens on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortInfoBody {
    /// The port's number.
    pub port: u16,
    /// Where and by whom, whether it is the one people mean, whether it speaks TLS.
    #[serde(flatten)]
    pub bound: ServicePort,
}

/// What was seen of a service's health last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceHealthBody {
    /// Whether it is well.
    pub ok: bool,
    /// What was seen.
    pub detail: String,
}

/// One service: what is defined, what runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ServiceBody {
    /// Its name; the short id where it has none.
    pub name: String,
    /// As [`ServiceStateBody::status`]; `stopped` where it is only defined.
    pub status: String,
    /// Whether it lives.
    pub living: bool,
    /// Its command for people.
    pub command: String,
    /// The path of the `ostler.toml` it is defined in, or `api`; null where it was started
    /// without a definition.
    pub defined_in: Option<String>,
    /// The `ostler.toml` of the workspace it belongs to; absent where it belongs to none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// What comes before it.
    pub depends_on: Vec<Dependency>,
    /// What it waits for before its program starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<String>,
    /// Whether it ended and was dismissed: lists show it on request only.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dismissed: bool,
    /// What deserves to be told besides, for example that it is no longer defined.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Its newest execution; null where it never ran.
    pub execution: Option<ExecutionBody>,
}

/// Services by name: a window of the list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ServicesBody {
    /// What lives or waits to comes first.
    pub services: Vec<ServiceBody>,
    /// How many there are in all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<usize>,
    /// The `parse_cursor` of the next window; absent at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// How many services live in other workspaces than the one that was asked about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elsewhere: Option<usize>,
}

/// A service that was asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EnsureResponse {
    /// The service.
    pub service: ServiceBody,
    /// Whether it lived already.
    pub reused: bool,
    /// Whether others need it completed: it is waited for until it ends.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub completes: bool,
    /// What was done and why, in words.
    pub note: String,
    /// How the wait for it was over, where one was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waited: Option<ReadinessWaitBody>,
    /// Why it is not ready, where it was waited for and failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<ServiceDiagnosisBody>,
    /// Who else listens on its main port, a sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shared: Vec<String>,
    /// All of it in document 004's words.
    pub message: String,
}

/// How a wait for readiness was over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadinessWaitBody {
    /// `wait`, `render_not_ready`, `exit` or `parse_wait_ms`.
    pub why: WaitEndKind,
    /// With `render_not_ready`: what was seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// What `up` did, in the order it was done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UpResponse {
    /// The services, each after what it depends on.
    pub services: Vec<EnsureResponse>,
}

/// What became of a stop.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ServiceStopResponse {
    /// The service.
    pub service: ServiceBody,
    /// Ports it held that are free now.
    pub released: Vec<u16>,
    /// Who listens still on ports it held.
    pub still_held: Vec<PortHolder>,
    /// Services that depended on it and were stopped before, in that order.
    pub dependents: Vec<String>,
}

/// Why a service is where it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceDiagnosisBody {
    /// Its name.
    pub name: String,
    /// Its status.
    pub status: String,
    /// One sentence.
    pub because: String,
    /// What was seen, oldest first, each with its time.
    pub evidence: Vec<String>,
    /// What can be done about it.
    pub hints: Vec<String>,
    /// Who else listens on its main port, a sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shared: Vec<String>,
}

/// `POST /api/v1/detect`: which service a command is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DetectResponse {
    /// The service; null where the command is none that is known.
    pub service: Option<DetectedServiceBody>,
}

/// A command that is a service.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DetectedServiceBody {
    /// The entry of the detection table.
    pub id: String,
    /// What it is, for people.
    pub title: String,
    /// What the command comes down to, after wrappers and scripts.
    pub normalised: String,
    /// What kind of program it is.
    pub kind: ServiceKind,
    /// When it is ready.
    pub ready_when: ProbeBody,
    /// How long a wait for it takes unless told otherwise, in milliseconds.
    pub ready_timeout_ms: u64,
    /// The port it asks for.
    pub port: Option<u16>,
    /// The port programs of its kind take unless told otherwise.
    pub default_port: Option<u16>,
    /// Lines that show it ready.
    pub ready_patterns: Vec<String>,
    /// Lines that show it failed.
    pub fail_patterns: Vec<String>,
    /// Variables it is given.
    pub env: Vec<(ByteString, ByteString)>,
    /// Arguments that give it a port; null where nothing is known to.
    pub port_arguments: Option<Vec<String>>,
    /// Whether it needs a terminal to work at all.
    pub terminal: bool,
}

impl ServiceStateBody {
    /// What is known of a service; none of what is finite.
    pub(super) fn of(info: &ExecutionInfo) -> Option<Self> {
        let plan = info.spec.lifetime.plan()?;
        let state = &info.state;
        let health = state.healthy.map(|ok| ServiceHealthBody {
            ok,
            detail: state.health.clone().unwrap_or_default(),
        });
        Some(Self {
            name: name(plan, info),
            status: info.status().service.to_owned(),
            stage: state.stage,
            url: state.url.clone(),
            ports: state.ports.iter().map(PortInfoBody::from).collect(),
            evidence: state.ready_evidence.clone(),
            signs: state.signs.clone(),
            warnings: state.warnings.clone(),
            health,
            restarts: state.attempt.saturating_sub(1),
            backoff_until: state.backoff_until,
            last_end: state.last_end.clone(),
            waits_for: waits_for(info),
            ready_when: ProbeBody::from(&plan.ready.when),
            ready_timeout_ms: millis(plan.ready.timeout()),
            detected: plan.detected.clone(),
            automatic: plan.automatic,
            leased_port: plan.leased_port,
            depends_on: plan.depends_on.clone(),
            defined_in: plan.defined_in.clone(),
        })
    }
}

impl ServiceStateBody {
    /// What is told of it in words; `info` is the execution this is part of.
    #[must_use]
    pub fn report<'a>(&'a self, info: &'a ExecutionBody) -> ServiceReport<'a> {
        ServiceReport {
            id: &info.id,
            pid: info.os_pid,
            status: &self.status,
            url: self.url.as_deref(),
            ports: self.ports.iter().map(|port| &port.bound).collect(),
            evidence: self.evidence.as_deref(),
            warnings: &self.warnings,
            waits_for: self.waits_for.clone(),
        }
    }
}

fn name(plan: &ServicePlan, info: &ExecutionInfo) -> String {
    match plan.name.as_str() {
        "" => info.id.short(),
        name => name.to_owned(),
    }
}

fn millis(span: std::time::Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

impl From<&ServicePort> for PortInfoBody {
    fn from(port: &ServicePort) -> Self {
        Self {
            port: port.address.port(),
            bound: port.clone(),
        }
    }
}

impl From<&ServiceInfo> for ServiceBody {
    fn from(service: &ServiceInfo) -> Self {
        Self {
            name: service.name.clone(),
            status: service.status().to_owned(),
            living: service.is_living(),
            command: service.command.clone(),
            defined_in: service.defined_in.clone(),
            workspace: service
                .workspace
                .as_ref()
                .map(|it| it.display().to_string()),
            depends_on: service.plan.depends_on.clone(),
            waits_for: service.pending.clone(),
            dismissed: service.dismissed,
            notes: service.notes.clone(),
            execution: service.execution.as_ref().map(ExecutionBody::from),
        }
    }
}

impl From<&ExecutionInfo> for ServiceBody {
    /// A service that runs, or ran, of which nothing else is known.
    fn from(info: &ExecutionInfo) -> Self {
        let plan = match &info.spec.lifetime {
            Lifetime::Service { plan, .. } => plan.as_ref().clone(),
            Lifetime::Finite { .. } => ServicePlan::default(),
        };
        Self {
            name: name(&plan, info),
            status: info.status().service.to_owned(),
            living: info.state.phase != Phase::Finished,
            command: info.spec.command.display(),
            defined_in: plan.defined_in.as_ref().map(ToString::to_string),
            workspace: None,
            depends_on: plan.depends_on,
            waits_for: None,
            dismissed: false,
            notes: Vec::new(),
            execution: Some(ExecutionBody::from(info)),
        }
    }
}

impl ServiceBody {
    /// The same service, as it is now.
    #[must_use]
    pub fn with_execution(self, info: ExecutionBody) -> Self {
        let state = info.service.as_deref();
        Self {
            status: state.map_or_else(|| self.status.clone(), |state| state.status.clone()),
            living: !info.is_finished(),
            execution: Some(info),
            ..self
        }
    }
}

impl From<&EnsureResult> for EnsureResponse {
    fn from(ensured: &EnsureResult) -> Self {
        Self {
            service: ServiceBody::from(&ensured.service),
            reused: ensured.reused,
            completes: ensured.completes,
            note: ensured.note.clone(),
            waited: None,
            reason: None,
            shared: Vec::new(),
            message: String::new(),
        }
    }
}

impl EnsureResponse {
    /// Whether it was waited for and failed, so that there is a reason to be told.
    #[must_use]
    pub fn failed(&self) -> bool {
        let end_reason = self.waited.as_ref().map(|waited| waited.why);
        matches!(end_reason, Some(WaitEndKind::NotReady | WaitEndKind::Exit))
            && !self.has_completed()
    }

    /// Takes in why it is where it is: the reason of a failure, or who shares its port.
    pub fn explain(&mut self, diagnosis: ServiceDiagnosisBody) {
        if self.failed() {
            self.reason = Some(diagnosis);
        } else {
            self.shared = diagnosis.shared;
        }
    }

    /// Whether others need it completed, and it has.
    #[must_use]
    pub fn has_completed(&self) -> bool {
        let info = self.service.execution.as_ref();
        self.completes && info.is_some_and(|info| info.is_finished() && info.exit_code == Some(0))
    }

    /// What is waited for.
    #[must_use]
    pub const fn wait_condition(&self) -> WaitUntil {
        if self.completes {
            WaitUntil::Exit
        } else {
            WaitUntil::Ready
        }
    }

    /// All of it in document 004's words; `waited_ms` is how long was waited at most.
    #[must_use]
    pub fn render(&self, waited_ms: u64) -> String {
        let info = self.service.execution.as_ref();
        let Some((info, state)) = info.and_then(|info| Some((info, info.service.as_deref()?)))
        else {
            return self.note.clone();
        };
        if self.has_completed() {
            return format!("{} completed: exit code 0", self.service.name);
        }
        let report = state.report(info);
        let outcome = self.waited.as_ref();
        let timed_out = || words::timeout_reason(&state.ready_when.clone().into(), waited_ms);
        let render_failure = |failure: &str| {
            let mut lines = vec![words::render_not_ready(failure)];
            lines.extend(
                self.reason
                    .iter()
                    .map(|why| format!("Why: {}", why.because)),
            );
            lines.extend((!info.is_finished()).then(|| words::render_still_running(&report)));
            lines.join("\n")
        };
        match outcome.map(|waited| (waited.why, waited.detail.as_deref())) {
            Some((WaitEndKind::TimedOut, _)) => render_failure(&timed_out()),
            Some((WaitEndKind::NotReady, detail)) => render_failure(detail.unwrap_or("it ended")),
            Some((WaitEndKind::Exit, _)) => {
                render_failure(&words::end_reason(info.error_message.as_deref()))
            }
            Some((
                WaitEndKind::Pattern
                | WaitEndKind::Ready
                | WaitEndKind::Output
                | WaitEndKind::Idle
                | WaitEndKind::Prompt
                | WaitEndKind::Nothing,
                _,
            ))
            | None => {
                // Who asked for it may have expected a new one.
                let has_note = self.reused || self.note.starts_with("replaced");
                let note = has_note.then(|| format!("\n{}", self.note));
                let shared = self.shared.iter().map(|it| format!("\nWarning: {it}"));
                words::render_started(&report)
                    + &shared.collect::<String>()
                    + &note.unwrap_or_default()
            }
        }
    }
}

impl From<&WaitEnd> for ReadinessWaitBody {
    fn from(end: &WaitEnd) -> Self {
        let detail = match end {
            WaitEnd::NotReady(detail) => Some(detail.clone()),
            WaitEnd::Exit
            | WaitEnd::Pattern(_)
            | WaitEnd::Prompt(_)
            | WaitEnd::Ready
            | WaitEnd::Output
            | WaitEnd::Idle
            | WaitEnd::TimedOut
            | WaitEnd::Nothing => None,
        };
        Self {
            why: WaitEndKind::from(end),
            detail,
        }
    }
}

impl From<ServiceStopped> for ServiceStopResponse {
    fn from(stopped: ServiceStopped) -> Self {
        Self {
            service: ServiceBody::from(&stopped.service),
            released: stopped.released,
            still_held: stopped.still_held,
            dependents: stopped.dependents,
        }
    }
}

impl From<ostler_engine::Diagnosis> for ServiceDiagnosisBody {
    fn from(diagnosis: ostler_engine::Diagnosis) -> Self {
        Self {
            name: diagnosis.name,
            status: diagnosis.status,
            because: diagnosis.cause,
            evidence: diagnosis.evidence,
            hints: diagnosis.hints,
            shared: diagnosis.shared_ports,
        }
    }
}

impl From<DetectedService> for DetectedServiceBody {
    fn from(detected: DetectedService) -> Self {
        let timeout = detected.ready.timeout();
        Self {
            id: detected.id,
            title: detected.title,
            normalised: detected.normalised,
            kind: detected.ready.kind,
            ready_when: ProbeBody::from(&detected.ready.when),
            ready_timeout_ms: millis(timeout),
            port: detected.ready.port,
            default_port: detected.ready.default_port,
            ready_patterns: detected.ready.ready,
            fail_patterns: detected.ready.fail,
            env: detected.env,
            port_arguments: detected.port_arguments,
            terminal: detected.terminal,
        }
    }
}
