//! A service definition, from an `ostler.toml` or through the API.

use std::cell::{RefCell, RefMut};
use std::time::Duration;

use ostler_model::duration::as_millis;
use ostler_model::{
    ByteString, Command, Dependency, HealthRule, PortRequest, ReadyCondition, RestartPolicy,
    StartOptions, TermSize,
};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::ServiceRequest;
use super::definition_form::DefinitionForm;
use crate::request::{StartRequest, StdinRequest};

/// The terminal of services that need one.
pub(crate) const TERMINAL_SIZE: TermSize = TermSize {
    cols: 120,
    rows: 40,
};

/// A service definition, without the environment of the client that starts it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "DefinitionForm", into = "DefinitionForm")]
pub struct ServiceDefinition {
    /// The service's name.
    pub name: String,
    /// Its command.
    pub command: Command,
    /// Its absolute working directory.
    pub cwd: ByteString,
    /// Its options; the isolation level is the minimum, which a request may raise, and a change of
    /// the description does not restart the service.
    pub options: StartOptions,
    /// When it counts as ready; none takes the detection table's rule.
    pub ready_when: Option<ReadyCondition>,
    /// A further pattern of lines that report it ready.
    pub ready_pattern: Option<String>,
    /// A further pattern of lines that report a failure.
    pub fail_pattern: Option<String>,
    /// The timeout of a wait for ready, in milliseconds.
    pub ready_timeout_ms: Option<u64>,
    /// When it is started again after its end.
    pub restart: RestartPolicy,
    /// The health rule after ready.
    pub health: Option<HealthRule>,
    /// The conditions on other services before it starts.
    pub depends_on: Vec<Dependency>,
    /// The port it is assigned.
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
            options: StartOptions::default(),
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
        Self {
            name,
            command: start.command.clone(),
            cwd: start.cwd.clone(),
            options: start.options.clone().for_definition(),
            ready_when: request.ready_when.clone(),
            ready_pattern: request.ready_pattern.clone(),
            fail_pattern: request.fail_pattern.clone(),
            ready_timeout_ms: request.ready_timeout.map(as_millis),
            restart: request.restart,
            health: request.health.clone(),
            depends_on: request.depends_on.clone(),
            port: request.port,
        }
    }

    /// The texts in which a start may hold the value of a secret, and its patterns of lines.
    pub(crate) fn texts(&self) -> Vec<ByteString> {
        let patterns = [&self.ready_pattern, &self.fail_pattern];
        let patterns = patterns.into_iter().flatten();
        let texts = RefCell::new(patterns.map(|it| ByteString::from(it.as_str())).collect());
        let collect = |text: &ByteString| {
            let mut texts: RefMut<'_, Vec<ByteString>> = texts.borrow_mut();
            texts.push(text.clone());
            text.clone()
        };
        drop(self.clone().map_texts(collect));
        texts.into_inner()
    }

    /// The definition with these texts changed.
    fn map_texts(mut self, change: impl Fn(&ByteString) -> ByteString) -> Self {
        self.command = self.command.map_words(&change);
        self.options = self.options.map_texts(&change);
        self.ready_when = self.ready_when.map(|it| it.map_texts(&change));
        self.health = self.health.map(|it| it.map_texts(&change));
        self
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
        start.options = self.options.clone().over(start.options);
        start.stdin = StdinRequest::Default;
        (start.options.timeout, start.options.idle, start.lifetime) = (None, None, None);
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
        let mut hashed = self.clone();
        hashed.options.description.clear();
        let json = serde_json::to_vec(&hashed).expect("definitions have string keys only");
        let mut digits = ostler_model::lower_hex(&Sha256::digest(json));
        digits.truncate(DIGITS);
        digits
    }
}
