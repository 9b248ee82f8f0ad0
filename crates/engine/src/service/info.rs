//! Services as callers see them.

use std::path::PathBuf;

use ostler_model::{PortHolder, ServicePlan};

use crate::error::Error;
use crate::info::ExecutionInfo;

/// One service: its definition and its newest execution.
#[derive(Debug, Clone)]
pub struct ServiceInfo {
    /// Its name; the short id where it has none.
    pub name: String,
    /// Its newest execution; none where it is only defined.
    pub execution: Option<ExecutionInfo>,
    /// Where it is defined: the path of an `ostler.toml`, or `api`; none where it was started
    /// without a definition.
    pub defined_in: Option<String>,
    /// Where its name is defined now: the path of the workspace's `ostler.toml`, or `api`. None where
    /// no definition has it, and where all workspaces were asked for.
    pub definition: Option<String>,
    /// The `ostler.toml` of the workspace it belongs to; none where it belongs to none.
    pub workspace: Option<PathBuf>,
    /// The command line it is started with, for people.
    pub command: String,
    /// Its service options: readiness, health, restart, dependencies.
    pub plan: ServicePlan,
    /// The condition it waits for before its program starts: `'db' to be ready`.
    pub pending: Option<String>,
    /// Whether it ended and was dismissed: lists leave it out.
    pub dismissed: bool,
    /// Remarks for people: `no longer defined in …`, `… cannot be used: line 7 …`.
    pub notes: Vec<String>,
}

impl ServiceInfo {
    /// Its status name; `pending` while it waits for its dependencies, `stopped` where it is only
    /// defined.
    #[must_use]
    pub fn status(&self) -> &'static str {
        if self.pending.is_some() && !self.is_living() {
            return "pending";
        }
        self.execution
            .as_ref()
            .map_or("stopped", |info| info.status().service)
    }

    /// Its main port, while it listens.
    #[must_use]
    pub fn main_port(&self) -> Option<u16> {
        let info = self.execution.as_ref().filter(|_| self.is_living())?;
        let main = info.state.ports.iter().find(|port| port.main)?;
        Some(main.address.port())
    }

    /// Whether an execution of it runs.
    #[must_use]
    pub fn is_living(&self) -> bool {
        self.execution
            .as_ref()
            .is_some_and(|info| !info.state.is_finished())
    }
}

/// The result of an `ensure`.
#[derive(Debug, Clone)]
pub struct EnsureResult {
    /// The service after the operation.
    pub service: ServiceInfo,
    /// Whether it was running already.
    pub reused: bool,
    /// Whether dependents need it completed: its successful end is awaited instead of ready.
    pub completes: bool,
    /// The action and its cause, as text: `reused: ready for 12 min`, `replaced: alive without its
    /// port`.
    pub note: String,
}

/// The result of a start within limits.
#[derive(Debug)]
pub enum ServiceStart {
    /// Its program runs.
    Running(Box<EnsureResult>),
    /// The request waited no longer: the engine starts it when what it waits for is so.
    Pending(Box<ServiceInfo>),
}

/// The result of an `up`.
#[derive(Debug)]
pub struct UpResult {
    /// The services that run or were started, each after its dependencies.
    pub services: Vec<EnsureResult>,
    /// Those that could not be started, each after its dependencies.
    pub failures: Vec<StartFailure>,
    /// Those that the request waited no longer for, each with what it waits for: the engine starts
    /// them when that is so. Empty unless [`StartLimits`](crate::StartLimits) are set.
    pub pending: Vec<ServiceInfo>,
}

/// A service that could not be started beside others.
#[derive(Debug)]
pub struct StartFailure {
    /// Its name.
    pub name: String,
    /// The cause.
    pub error: Error,
}

/// The result of a stop.
#[derive(Debug, Clone)]
pub struct ServiceStopped {
    /// The service after the stop.
    pub service: ServiceInfo,
    /// Ports it held that are free now.
    pub released: Vec<u16>,
    /// Ports it held that some process still listens on.
    pub still_held: Vec<PortHolder>,
    /// Dependents that were stopped before it, in that order.
    pub dependents: Vec<String>,
}

/// Explains the state of a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnosis {
    /// The service's name.
    pub name: String,
    /// Its status name.
    pub status: String,
    /// One sentence: `waits for 'db', which is starting: it waits for a port to listen`.
    pub cause: String,
    /// The observations, oldest first, each with its time.
    pub evidence: Vec<String>,
    /// Suggested actions.
    pub hints: Vec<String>,
    /// Other processes that listen on its main port, a sentence each: one that shares it
    /// (`SO_REUSEPORT`), or listens on the other address family.
    pub shared_ports: Vec<String>,
    /// The question that it asks and that nobody has answered yet.
    pub question: Option<ServiceQuestion>,
}

/// The open question of a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceQuestion {
    /// The visible text of its prompt; may be empty.
    pub text: String,
    /// The id of the interaction that answers it.
    pub interaction: String,
    /// Whether the answer must not be displayed.
    pub secret: bool,
}
