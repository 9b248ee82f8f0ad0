//! Services as callers see them.

use std::path::PathBuf;

use ostler_model::{PortHolder, ServicePlan};

use crate::info::ExecutionInfo;

/// One service: what is defined, what runs.
#[derive(Debug, Clone)]
pub struct ServiceInfo {
    /// Its name; the short id where it has none.
    pub name: String,
    /// Its newest execution; none where it is only defined.
    pub execution: Option<ExecutionInfo>,
    /// Where it is defined: the path of an `ostler.toml`, or `api`; none where it was started
    /// without a definition.
    pub defined_in: Option<String>,
    /// The `ostler.toml` of the workspace it belongs to; none where it belongs to none.
    pub workspace: Option<PathBuf>,
    /// What it would be started with, for those that are defined; its command for people.
    pub command: String,
    /// What is asked of it.
    pub plan: ServicePlan,
    /// What it waits for before its program starts: `'db' to be ready`; none where it waits for
    /// nothing.
    pub pending: Option<String>,
    /// Whether it ended and was dismissed: lists leave it out.
    pub dismissed: bool,
    /// What deserves to be told besides: `no longer defined in …`, `… cannot be used: line 7 …`.
    pub notes: Vec<String>,
}

impl ServiceInfo {
    /// Document 004's word for where it stands; `pending` where it waits for what it depends
    /// on, `stopped` where it is only defined.
    #[must_use]
    pub fn status(&self) -> &'static str {
        if self.pending.is_some() && !self.is_living() {
            return "pending";
        }
        self.execution
            .as_ref()
            .map_or("stopped", |info| info.status().service)
    }

    /// The port people mean, where it listens.
    #[must_use]
    pub fn main_port(&self) -> Option<u16> {
        let info = self.execution.as_ref().filter(|_| self.is_living())?;
        let main = info.state.ports.iter().find(|port| port.main)?;
        Some(main.address.port())
    }

    /// Whether it lives.
    #[must_use]
    pub fn is_living(&self) -> bool {
        self.execution
            .as_ref()
            .is_some_and(|info| !info.state.is_finished())
    }
}

/// What became of an `ensure`.
#[derive(Debug, Clone)]
pub struct EnsureResult {
    /// The service.
    pub service: ServiceInfo,
    /// Whether it lived already.
    pub reused: bool,
    /// Whether others need it completed: its good end is what is waited for.
    pub completes: bool,
    /// What was done and why, in words: `reused: ready for 12 min`, `replaced: alive without
    /// its port`.
    pub note: String,
}

/// What became of a stop.
#[derive(Debug, Clone)]
pub struct ServiceStopped {
    /// The service.
    pub service: ServiceInfo,
    /// Ports it held that are free now.
    pub released: Vec<u16>,
    /// Ports it held that somebody listens on still.
    pub still_held: Vec<PortHolder>,
    /// Services that depended on it and were stopped before, in that order.
    pub dependents: Vec<String>,
}

/// Why a service is where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnosis {
    /// Its name.
    pub name: String,
    /// Its status.
    pub status: String,
    /// One sentence: `waits for 'db', which is starting: it waits for a port to listen`.
    pub cause: String,
    /// What was seen, oldest first, each with its time.
    pub evidence: Vec<String>,
    /// What can be done about it.
    pub hints: Vec<String>,
    /// Who else listens on its main port, a sentence each: one that shares it
    /// (`SO_REUSEPORT`), or has the other family of addresses.
    pub shared_ports: Vec<String>,
}
