//! Service requests.

use ostler_model::{Dependency, HealthRule, ReadyCondition, RestartPolicy};
use serde::{Deserialize, Serialize};
use std::time::Duration;

use crate::request::StartRequest;

/// A request to start a service.
#[derive(Debug, Clone)]
pub struct ServiceRequest {
    /// Its name; none derives one from the detected framework or the program.
    pub name: Option<String>,
    /// The command with its options; the lifetime is set by the service start.
    pub start: StartRequest,
    /// When it counts as ready; none takes the detection table's rule.
    pub ready_when: Option<ReadyCondition>,
    /// A further pattern of lines that report it ready.
    pub ready_pattern: Option<String>,
    /// A further pattern of lines that report a failure.
    pub fail_pattern: Option<String>,
    /// The default timeout of a wait for ready; none takes the table's.
    pub ready_timeout: Option<Duration>,
    /// When it is started again after its end.
    pub restart: RestartPolicy,
    /// The health rule after ready; none checks only its process and main port.
    pub health: Option<HealthRule>,
    /// The conditions on other services before it starts.
    pub depends_on: Vec<Dependency>,
    /// The port it is assigned.
    pub port: PortRequest,
    /// Whether the engine, not the caller, decided that this is a service.
    pub automatic: bool,
}

/// The port that a service is assigned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PortRequest {
    /// The one its command uses.
    #[default]
    Own,
    /// This port: `PORT` is set and, where the table knows how, arguments are added.
    Fixed(u16),
    /// A free port, leased to it for its lifetime, unique across all sessions.
    Lease,
}

impl ServiceRequest {
    /// A service request with every default.
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
