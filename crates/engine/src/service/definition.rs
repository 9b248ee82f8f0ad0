//! A service definition, from an `ostler.toml` or through the API.

use std::time::Duration;

use ostler_model::{
    ByteString, Command, Dependency, HealthRule, IsolationLevel, Limits, ReadyCondition,
    RestartPolicy, TermSize,
};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{PortRequest, ServiceRequest};
use crate::request::{SandboxOptions, StartRequest, StdinRequest};

/// The terminal of services that need one.
pub(crate) const TERMINAL_SIZE: TermSize = TermSize {
    cols: 120,
    rows: 40,
};

/// A service definition, without the environment of the client that starts it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceDefinition {
    /// The service's name.
    pub name: String,
    /// Its command.
    pub command: Command,
    /// Its absolute working directory.
    pub cwd: ByteString,
    /// Variables added or replaced.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<(ByteString, ByteString)>,
    /// Whether the client's whole environment is passed on; none takes the request's value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inherit_env: Option<bool>,
    /// The names of its secrets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<String>,
    /// The minimum isolation level; a request may raise it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<IsolationLevel>,
    /// Resource limits of its process tree.
    #[serde(default)]
    pub limits: Limits,
    /// What isolation level high exposes and reaches beyond its defaults.
    #[serde(default)]
    pub confine: SandboxOptions,
    /// The size of its terminal; none uses pipes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terminal: Option<TermSize>,
    /// A description for people; a change of it does not restart the service.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// When it counts as ready; none takes the detection table's rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready_when: Option<ReadyCondition>,
    /// A further pattern of lines that report it ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready_pattern: Option<String>,
    /// A further pattern of lines that report a failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fail_pattern: Option<String>,
    /// The timeout of a wait for ready, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready_timeout_ms: Option<u64>,
    /// When it is started again after its end.
    pub restart: RestartPolicy,
    /// The health rule after ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health: Option<HealthRule>,
    /// The conditions on other services before it starts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<Dependency>,
    /// The port it is assigned.
    #[serde(default)]
    pub port: PortRequest,
}

impl ServiceDefinition {
    /// A definition with every default.
    #[must_use]
    pub fn new(name: impl Into<String>, command: Command, cwd: impl Into<ByteString>) -> Self {
        Self {
            name: name.into(),
            command,
            cwd: cwd.into(),
            env: Vec::new(),
            inherit_env: None,
            secrets: Vec::new(),
            level: None,
            limits: Limits::default(),
            confine: SandboxOptions::default(),
            terminal: None,
            description: String::new(),
            ready_when: None,
            ready_pattern: None,
            fail_pattern: None,
            ready_timeout_ms: None,
            restart: RestartPolicy::Never,
            health: None,
            depends_on: Vec::new(),
            port: PortRequest::Own,
        }
    }

    /// The definition that a request describes: all but the client's environment and per-start
    /// options.
    #[must_use]
    pub fn from_request(name: String, request: &ServiceRequest) -> Self {
        let start = &request.start;
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        Self {
            name,
            command: start.command.clone(),
            cwd: start.cwd.clone(),
            env: start.set_env.clone(),
            inherit_env: start.inherit_env,
            secrets: start.secrets.clone(),
            level: start.level,
            limits: start.limits,
            confine: start.sandbox.clone(),
            terminal: start.pty,
            description: start.description.clone(),
            ready_when: request.ready_when.clone(),
            ready_pattern: request.ready_pattern.clone(),
            fail_pattern: request.fail_pattern.clone(),
            ready_timeout_ms: request.ready_timeout.map(millis),
            restart: request.restart,
            health: request.health.clone(),
            depends_on: request.depends_on.clone(),
            port: request.port,
        }
    }

    /// The request that starts it: `base` holds the client's environment, allow list, level and
    /// limits. A definition can tighten those, never loosen them.
    #[must_use]
    pub fn to_request(&self, base: &StartRequest) -> ServiceRequest {
        let mut start = base.clone();
        // The client's request may start several services.
        start.id = None;
        start.command.clone_from(&self.command);
        start.cwd.clone_from(&self.cwd);
        for (name, value) in &self.env {
            start.set_env.retain(|(known, _)| known != name);
            start.set_env.push((name.clone(), value.clone()));
        }
        start.inherit_env = self.inherit_env.or(base.inherit_env);
        for secret in &self.secrets {
            if !start.secrets.contains(secret) {
                start.secrets.push(secret.clone());
            }
        }
        start.level = self.level.max(base.level);
        start.limits = self.limits.or(base.limits);
        if self.confine != SandboxOptions::default() {
            start.sandbox = self.confine.clone();
        }
        start.pty = self.terminal.or(base.pty);
        if !self.description.is_empty() {
            start.description.clone_from(&self.description);
        }
        start.stdin = StdinRequest::Default;
        (start.timeout, start.idle, start.lifetime) = (None, None, None);
        ServiceRequest {
            name: Some(self.name.clone()),
            start,
            ready_when: self.ready_when.clone(),
            ready_pattern: self.ready_pattern.clone(),
            fail_pattern: self.fail_pattern.clone(),
            ready_timeout: self.ready_timeout_ms.map(Duration::from_millis),
            restart: self.restart,
            health: self.health.clone(),
            depends_on: self.depends_on.clone(),
            port: self.port,
            automatic: false,
        }
    }

    /// A hash that distinguishes this definition from others of its name, as 32 hexadecimal digits.
    /// Fields that are only for people do not count.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        const DIGITS: usize = 32;
        let hashed = Self {
            description: String::new(),
            ..self.clone()
        };
        let json = serde_json::to_vec(&hashed).expect("definitions have string keys only");
        let mut digits = ostler_model::lower_hex(&Sha256::digest(json));
        digits.truncate(DIGITS);
        digits
    }
}
