//! The state of an execution as a service.

use ostler_model::{ByteString, Dependency, ReadinessSignal, ServicePort, ServiceStage, Timestamp};
use serde::{Deserialize, Serialize};

use super::service_request::ProbeBody;

/// The state of an execution as a service.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ServiceStateBody {
    /// Its name; the short id where it has none.
    pub name: String,
    /// `pending`, `starting`, `listening`, `responding`, `ready`, `running`, `degraded`,
    /// `stopping`, `stopped`, `failed` or `crash_looping`.
    pub status: String,
    /// How far the newest attempt has come; null before its first sign that it works.
    pub stage: Option<ServiceStage>,
    /// The URL of its main port.
    pub url: Option<String>,
    /// The ports it listens on.
    pub ports: Vec<PortInfoBody>,
    /// The evidence of its readiness, as one sentence.
    pub evidence: Option<String>,
    /// The signals observed, oldest first.
    pub signs: Vec<ReadinessSignal>,
    /// Warnings.
    pub warnings: Vec<String>,
    /// The last health state; null where there is none.
    pub health: Option<ServiceHealthBody>,
    /// Attempts after the first.
    pub restarts: u32,
    /// When the process of the newest attempt was started; null where it could not be.
    #[serde(default)]
    pub attempt_start_time: Option<Timestamp>,
    /// When the next attempt starts, between two attempts.
    pub backoff_until: Option<Timestamp>,
    /// How the previous attempt ended, as text.
    pub last_end: Option<String>,
    /// The prompt at which it waits for input now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// What its readiness waits for; null once it is ready and after its end.
    pub waits_for: Option<String>,
    /// The condition of its readiness.
    pub ready_when: ProbeBody,
    /// The default timeout of a wait for it, in milliseconds.
    pub ready_timeout_ms: u64,
    /// The entry of the detection table that recognised it.
    pub detected: Option<String>,
    /// Whether it was recognised as a service rather than requested as one.
    pub automatic: bool,
    /// The port assigned to it.
    pub leased_port: Option<u16>,
    /// The services it depends on.
    pub depends_on: Vec<Dependency>,
    /// The file or API that defines it.
    pub defined_in: Option<ByteString>,
}

/// A port a service listens on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortInfoBody {
    /// The port's number.
    pub port: u16,
    /// Its address and process, whether it is the main port, whether it speaks TLS.
    #[serde(flatten)]
    pub bound: ServicePort,
}

/// The last health state of a service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceHealthBody {
    /// Whether it is healthy.
    pub ok: bool,
    /// The observation, as text.
    pub detail: String,
}

impl From<&ServicePort> for PortInfoBody {
    fn from(port: &ServicePort) -> Self {
        Self {
            port: port.address.port(),
            bound: port.clone(),
        }
    }
}
