//! Services: what is defined, what lives, how far it is.

use ostler_model::{
    ByteString, Dependency, PortHolder, ReadinessSignal, ServiceKind, ServicePort, ServiceStage,
    Timestamp,
};
use serde::{Deserialize, Serialize};

use super::info::ExecutionBody;
use super::service_request::ProbeBody;
use super::wait::{WaitEndKind, WaitUntil};

/// What is known of an execution as a service.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ServiceStateBody {
    /// What it is called; the short id where it has no name.
    pub name: String,
    /// `pending`, `starting`, `listening`, `responding`, `ready`, `running`, `degraded`,
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
    /// The `cursor` of the next window; absent at the end.
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
    /// `ready`, `not_ready`, `exit` or `at_most`.
    pub why: WaitEndKind,
    /// With `not_ready`: what was seen.
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

impl From<&ServicePort> for PortInfoBody {
    fn from(port: &ServicePort) -> Self {
        Self {
            port: port.address.port(),
            bound: port.clone(),
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
}
