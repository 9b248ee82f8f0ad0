//! Service requests.

use ostler_model::{Dependency, HealthRule, ReadyCondition, RestartPolicy};
use serde::{Deserialize, Serialize};
use std::time::Duration;

use crate::request::StartRequest;

/// A request to start a service.
#[derive(Debug, Clone)]
pub struct ServiceRequest {
    /// What it is called; none makes up one from the detected framework or the program.
    pub name: Option<String>,
    /// The command and everything around it; its lifetime is decided here.
    pub start: StartRequest,
    /// When it is ready; none decides by the detection table.
    pub ready_when: Option<ReadyCondition>,
    /// Further lines that show it ready.
    pub ready_pattern: Option<String>,
    /// Further lines that show it failed.
    pub fail_pattern: Option<String>,
    /// How long a wait for it takes unless told otherwise; none takes the table's.
    pub ready_timeout: Option<Duration>,
    /// What happens when it ends.
    pub restart: RestartPolicy,
    /// What shows that it stays well.
    pub health: Option<HealthRule>,
    /// What must be so before it starts.
    pub depends_on: Vec<Dependency>,
    /// Which port it gets.
    pub port: PortRequest,
    /// Whether nobody asked for a service.
    pub automatic: bool,
}

/// Which port a service gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PortRequest {
    /// As its command says.
    #[default]
    Own,
    /// This one: `PORT` is set and, where the table knows how, arguments are added.
    Fixed(u16),
    /// A free one, leased to it as long as it lives, of all sessions.
    Lease,
}

impl ServiceRequest {
    /// A service of which nothing is asked but to run.
    #[must_use]
    pub const fn new(start: StartRequest) -> Self {
        Self {
            name: None,
            start,
            ready_when: None,
            ready_pattern: None,
            fail_pattern: None,
            ready_timeout: None,
            restart: RestartPolicy::Never,
            health: None,
            depends_on: Vec::new(),
            port: PortRequest::Own,
            automatic: false,
        }
    }
}
