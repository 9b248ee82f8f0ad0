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

/// Everything that makes up a service, without the front that starts it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceDefinition {
    /// What it is called.
    pub name: String,
    /// What runs.
    pub command: Command,
    /// Its absolute working directory.
    pub cwd: ByteString,
    /// Variables added or replaced.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<(ByteString, ByteString)>,
    /// Whether the whole environment of the front is passed on; none takes the front's wish.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inherit_env: Option<bool>,
    /// Secrets, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<String>,
    /// How far it is isolated at least; a front may ask for more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<IsolationLevel>,
    /// Limits of its tree.
    #[serde(default)]
    pub limits: Limits,
    /// What level high shows and reaches beyond its defaults.
    #[serde(default)]
    pub confine: SandboxOptions,
    /// A terminal instead of pipes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terminal: Option<TermSize>,
    /// For people; a change of it changes nothing that runs.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// When it is ready; none decides by the detection table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready_when: Option<ReadyCondition>,
    /// Further lines that show it ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready_pattern: Option<String>,
    /// Further lines that show it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fail_pattern: Option<String>,
    /// How long a wait for it takes, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready_timeout_ms: Option<u64>,
    /// What happens when it ends.
    pub restart: RestartPolicy,
    /// What shows that it stays well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health: Option<HealthRule>,
    /// What comes first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<Dependency>,
    /// Which port it gets.
    #[serde(default)]
    pub port: PortRequest,
}

impl ServiceDefinition {
    /// A service of which nothing is asked but to run.
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

    /// What is kept of a request: all but the front's environment and its passing wishes.
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

    /// The request to start it, for a front: `base` brings its environment, its allow list, its
    /// level and its limits. A definition can tighten those, never loosen them.
    #[must_use]
    pub fn to_request(&self, base: &StartRequest) -> ServiceRequest {
        let mut start = base.clone();
        // What the front asked for may start several services.
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

    /// What tells this definition from others of its name, as 32 hexadecimal digits. What is
    /// only for people does not count.
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
