//! Requests for contexts.

use std::time::Duration;

use ostler_model::{
    ByteString, Caller, Command, Lifetime, Principal, Scope, SessionName, StartOptions,
};

use super::record::ContextRecord;
use crate::admission::{arguments, secret_fields, secrets, working_dir};
use crate::error::{ArgumentError, ContextError, Error};
use crate::request::StartRequest;
use crate::settings::Settings;

/// The longest name of a project or a task, in bytes.
const NAME_BYTES: usize = 1_024;

/// A request for a context: the warm one of the project, or a new one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ContextRequest {
    /// The project.
    pub project: String,
    /// The task, for the variable of that name.
    pub task: Option<String>,
    /// The absolute directory that its executions work in; none takes the project where that is an
    /// absolute path, or else creates one, which is removed with the context.
    pub directory: Option<ByteString>,
    /// When it ends without use; none takes the setting.
    pub idle_timeout: Option<Duration>,
    /// What every start in it asks for, unless it asks for something else. Its `timeout` is that of
    /// each execution; none takes the setting.
    pub options: StartOptions,
}

/// Whose context of which project: one caller has at most one warm one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct ContextKey {
    pub(super) principal: Principal,
    pub(super) session: Option<SessionName>,
    pub(super) project: String,
}

impl ContextKey {
    /// Callers that see one session only have contexts of that session.
    pub(super) fn new(caller: &Caller, project: &str) -> Self {
        Self {
            principal: caller.owner.principal.clone(),
            session: match caller.scope {
                Scope::Session => caller.owner.session.clone(),
                Scope::Principal => None,
            },
            project: project.to_owned(),
        }
    }
}

impl ContextRequest {
    /// A request for a project, with every default.
    #[must_use]
    pub fn new(project: impl Into<String>) -> Self {
        Self {
            project: project.into(),
            ..Self::default()
        }
    }

    /// The directory that it names: also that of a project which is an absolute path. None where one
    /// is created.
    pub(super) fn existing_directory(&self) -> Option<ByteString> {
        let is_path = self.project.starts_with('/');
        let project = || is_path.then(|| ByteString::from(self.project.as_str()));
        self.directory.clone().or_else(project)
    }

    /// Whether everything in it is allowed, before anything is created.
    pub(super) fn check(&self, settings: &Settings, caller: &Caller) -> Result<(), Error> {
        check_name("project", &self.project)?;
        if let Some(task) = &self.task {
            check_name("task", task)?;
        }
        if let Some(idle) = self.idle_timeout {
            check_positive("the idle time of the context", idle)?;
        }
        if self.options.pty.is_some() {
            return Err(value_error(
                "pty",
                "",
                "a context has no terminal; allowed: pty of each start",
            ));
        }
        let directory = self.existing_directory();
        if let Some(directory) = &directory {
            working_dir::check(directory)?;
        }
        let directory = directory.unwrap_or_default();
        let mut probe = StartRequest::new(
            Command::Argv {
                program: "true".into(),
                args: Vec::new(),
            },
            directory.clone(),
        );
        probe.options = self.options.clone();
        probe.lifetime = Some(Lifetime::Finite {
            timeout: self.options.timeout,
            idle: self.options.idle,
        });
        arguments::check(&probe)?;
        secrets::check_access(settings, &self.options.secrets, &caller.owner, &directory)?;
        let known = secrets::known_secrets(settings, &self.options.secrets, &settings.base_env);
        secret_fields::check_context(&self.options, &known)
    }

    /// The first field in which the context differs from this request; none where the request asks
    /// for nothing but the project, or for exactly this.
    pub(super) fn difference(&self, record: &ContextRecord) -> Option<&'static str> {
        if *self == Self::new(self.project.as_str()) {
            return None;
        }
        let same_directory = match self.existing_directory() {
            Some(directory) => directory == record.directory,
            None => record.created.is_some(),
        };
        let fields = [
            ("task", self.task == record.task),
            ("cwd", same_directory),
            (
                "idle_timeout_ms",
                self.idle_timeout.is_none_or(|it| it == record.idle_timeout),
            ),
            ("its options", self.options == record.options),
        ];
        fields
            .into_iter()
            .find(|(_, same)| !same)
            .map(|(name, _)| name)
    }
}

/// A name that people and variables of the environment can hold.
fn check_name(field: &'static str, name: &str) -> Result<(), Error> {
    arguments::check_length(field, name.len(), NAME_BYTES)?;
    if name.is_empty() {
        return Err(value_error(field, name, "it is empty"));
    }
    if name.chars().any(char::is_control) {
        return Err(value_error(field, name, "it contains a control character"));
    }
    Ok(())
}

fn check_positive(what: &'static str, time: Duration) -> Result<(), ArgumentError> {
    if time.is_zero() {
        return Err(ArgumentError::Invalid {
            what: what.to_owned(),
            problem: "it must be more than 0",
        });
    }
    arguments::check_duration(what, time)
}

fn value_error(field: &'static str, given: &str, problem: &str) -> Error {
    ContextError::Value {
        field,
        given: ostler_model::visible(given).into_owned(),
        problem: problem.to_owned(),
    }
    .into()
}
