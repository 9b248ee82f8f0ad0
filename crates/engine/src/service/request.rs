//! Service requests.

use ostler_model::{Dependency, HealthRule, PortRequest, ReadyCondition, RestartPolicy};
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

/// Whether a start may be answered by a service that runs already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServiceReuse {
    /// A running service of the name is an error.
    Refuse,
    /// A healthy one is reused; one that is not, or that changed, is replaced.
    Allow,
}

/// How long a start of services waits; afterwards it goes on in the engine. None waits as
/// long as it takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StartLimits {
    /// For dependencies. A service that waits for none is waited for longer, until it runs.
    pub dependencies: Option<Duration>,
    /// In all.
    pub total: Option<Duration>,
}
