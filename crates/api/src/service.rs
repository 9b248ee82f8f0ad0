//! Services: definitions, running ones, and their state.

use ostler_model::{ByteString, Dependency, ErrorCode, PortHolder, ServiceKind};
use serde::{Deserialize, Serialize};

use super::info::ExecutionBody;
use super::service_request::ProbeBody;
use super::wait::{WaitEndKind, WaitUntil};

/// One service: its definition and its newest execution.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ServiceBody {
    /// Its name; the short id where it has none.
    pub name: String,
    /// As [`ServiceStateBody::status`](super::ServiceStateBody::status); `stopped` where it is only defined.
    pub status: String,
    /// Whether it is running or pending.
    pub living: bool,
    /// Its command for people.
    pub command: String,
    /// The path of the `ostler.toml` it is defined in, or `api`; null where it was started
    /// without a definition.
    pub defined_in: Option<String>,
    /// Where its name is defined now: the path of the workspace's `ostler.toml`, or `api`. Absent
    /// where no definition has it, and in lists of all workspaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definition: Option<String>,
    /// The `ostler.toml` of the workspace it belongs to; absent where it belongs to none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// The services it depends on.
    pub depends_on: Vec<Dependency>,
    /// The condition it waits for before its program starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<String>,
    /// Whether it ended and was dismissed: lists show it on request only.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dismissed: bool,
    /// Additional notes, for example that it is no longer defined.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Its newest execution; null where it never ran.
    pub execution: Option<ExecutionBody>,
}

/// Services by name: a page of the list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ServicesBody {
    /// Running and pending ones come first.
    pub services: Vec<ServiceBody>,
    /// How many there are in all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<usize>,
    /// The `cursor` of the next window; absent at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// How many services run in other workspaces than the requested one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elsewhere: Option<usize>,
}

/// A service that was started or reused.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EnsureResponse {
    /// The service's present state.
    pub service: ServiceBody,
    /// Whether it was running already.
    pub reused: bool,
    /// Whether others depend on its completion: then the wait is for its end.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub completes: bool,
    /// The action and its reason, as text.
    pub note: String,
    /// The outcome of the wait, where one was requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waited: Option<ReadinessWaitBody>,
    /// Why it is not ready, where the wait failed, or where it timed out while the service asks
    /// something or is paused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<ServiceDiagnosisBody>,
    /// Other processes that listen on its main port, a sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shared: Vec<String>,
    /// The complete answer as text.
    pub message: String,
}

/// The outcome of a wait for readiness.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadinessWaitBody {
    /// `ready`, `not_ready`, `exit` or `at_most`.
    pub why: WaitEndKind,
    /// With `not_ready`: the last observation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// What `up` did, in order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UpResponse {
    /// The services, each after its dependencies.
    pub services: Vec<EnsureResponse>,
    /// Those that could not be started. Where none of the requested ones could, the response is the
    /// error of the first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<StartFailureBody>,
    /// Those that were not waited for any longer than `wait_ms`, each with what it waits for: they
    /// are started when that is so.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pending: Vec<ServiceBody>,
}

/// A service that could not be started beside others.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StartFailureBody {
    /// Its name.
    pub name: String,
    /// The stable error code.
    pub code: ErrorCode,
    /// The cause.
    pub message: String,
    /// What to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// The outcome of a stop.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ServiceStopResponse {
    /// The service's present state.
    pub service: ServiceBody,
    /// Ports it held that are free now.
    pub released: Vec<u16>,
    /// Processes that still listen on ports it held.
    pub still_held: Vec<PortHolder>,
    /// Services that depended on it and were stopped before, in that order.
    pub dependents: Vec<String>,
}

/// The diagnosis of a service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceDiagnosisBody {
    /// The service's name.
    pub name: String,
    /// The service's status.
    pub status: String,
    /// The diagnosis as one sentence.
    pub because: String,
    /// The evidence, oldest first, each with its time.
    pub evidence: Vec<String>,
    /// Suggested actions.
    pub hints: Vec<String>,
    /// Other processes that listen on its main port, a sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shared: Vec<String>,
    /// The question that it asks and that nobody has answered yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<ServiceQuestionBody>,
}

/// The open question of a service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceQuestionBody {
    /// The visible text of its prompt; may be empty.
    pub text: String,
    /// The id of the interaction that answers it.
    pub interaction: String,
    /// Whether the answer must not be displayed.
    pub secret: bool,
}

/// `POST /api/v1/detect`: which service a command is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DetectResponse {
    /// The service; null where the command is not recognised.
    pub service: Option<DetectedServiceBody>,
}

/// A command recognised as a service.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DetectedServiceBody {
    /// The entry of the detection table.
    pub id: String,
    /// The name of its kind, for people.
    pub title: String,
    /// The effective command, after wrappers and scripts.
    pub normalised: String,
    /// The kind of program.
    pub kind: ServiceKind,
    /// The condition of its readiness.
    pub ready_when: ProbeBody,
    /// The default timeout of a wait for it, in milliseconds.
    pub ready_timeout_ms: u64,
    /// The port in its command.
    pub port: Option<u16>,
    /// The default port of its kind.
    pub default_port: Option<u16>,
    /// Patterns of lines that show readiness.
    pub ready_patterns: Vec<String>,
    /// Patterns of lines that show failure.
    pub fail_patterns: Vec<String>,
    /// Environment variables it is given.
    pub env: Vec<(ByteString, ByteString)>,
    /// Arguments that set its port; null where none are known.
    pub port_arguments: Option<Vec<String>>,
    /// Whether it requires a terminal.
    pub terminal: bool,
}

impl From<EnsureResponse> for UpResponse {
    /// One service that was started.
    fn from(service: EnsureResponse) -> Self {
        Self {
            services: vec![service],
            failures: Vec::new(),
            pending: Vec::new(),
        }
    }
}

impl ServiceBody {
    /// The same service, in its present state.
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
    /// Whether the wait for it failed, so that there is a reason to report.
    #[must_use]
    pub fn failed(&self) -> bool {
        let end_reason = self.waited.as_ref().map(|waited| waited.why);
        matches!(end_reason, Some(WaitEndKind::NotReady | WaitEndKind::Exit))
            && !self.has_completed()
    }

    /// Whether the wait for it timed out, and nothing goes on until somebody acts.
    fn is_held_up(&self, diagnosis: &ServiceDiagnosisBody) -> bool {
        let waited = self.waited.as_ref().map(|waited| waited.why);
        let execution = self.service.execution.as_ref();
        let is_paused = execution.is_some_and(|it| it.paused);
        waited == Some(WaitEndKind::TimedOut) && (diagnosis.question.is_some() || is_paused)
    }

    /// Adds the diagnosis: the reason of a failure, or who shares its port.
    pub fn explain(&mut self, diagnosis: ServiceDiagnosisBody) {
        if self.failed() || self.is_held_up(&diagnosis) {
            self.reason = Some(diagnosis);
        } else {
            self.shared = diagnosis.shared;
        }
    }

    /// Whether others depend on its completion, and it has completed.
    #[must_use]
    pub fn has_completed(&self) -> bool {
        let info = self.service.execution.as_ref();
        self.completes && info.is_some_and(|info| info.is_finished() && info.exit_code == Some(0))
    }

    /// The condition of the wait.
    #[must_use]
    pub const fn wait_condition(&self) -> WaitUntil {
        if self.completes {
            WaitUntil::Exit
        } else {
            WaitUntil::Ready
        }
    }
}
