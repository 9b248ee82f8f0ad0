//! Errors of service requests.

use ostler_model::{ErrorCode, PortHolder};

use crate::admission::service_plan::InvalidServicePlan;
use crate::error::Error;

/// A request for a service that could not be carried out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ServiceError {
    /// Nobody of this name runs, and none is defined.
    #[error("no service '{name}'; known: {}{}", names(.known), others(.elsewhere))]
    Unknown {
        /// As it was given.
        name: String,
        /// The names there are, at most 20.
        known: Vec<String>,
        /// Those of this name that live in other workspaces: id and directory.
        elsewhere: Vec<String>,
    },
    /// Only an ended one can be dismissed.
    #[error("'{name}' has not ended, as {id}: only ended services are dismissed")]
    Living {
        /// Its name.
        name: String,
        /// Its id.
        id: String,
    },
    /// One of this name lives already.
    #[error("service '{name}' runs already as {id}")]
    Running {
        /// Its name.
        name: String,
        /// Its short id.
        id: String,
    },
    /// The port it wants is held by somebody else; nothing was started or ended.
    #[error("port {port} is held by {}", whose(.service.as_deref(), .holder))]
    PortTaken {
        /// Which.
        port: u16,
        /// By whom.
        holder: Box<PortHolder>,
        /// The caller's own service it is, by name.
        service: Option<String>,
    },
    /// No port is left to lease.
    #[error("no port from {first} to {last} is free to lease")]
    NoPort {
        /// The first that may be leased.
        first: u16,
        /// The last.
        last: u16,
    },
    /// One of several that were asked for could not be started.
    #[error("service '{name}': {problem}")]
    Start {
        /// Which.
        name: String,
        /// What was wrong.
        problem: String,
        /// The row of what was wrong.
        code: ErrorCode,
        /// What to do about it.
        hint: Option<String>,
    },
    /// A dependency cannot be had.
    #[error("it depends on '{on}', which {problem}")]
    Dependency {
        /// On which.
        on: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A definition cannot be used.
    #[error("{file}: {problem}")]
    Manifest {
        /// Which file.
        file: String,
        /// What is wrong, with its line.
        problem: String,
    },
    /// Nothing is defined where the caller stands.
    #[error(
        "no ostler.toml in {from} or above it, up to the home directory or /{}",
        name.as_ref().map_or_else(String::new, |it| format!("; and no service '{it}' is defined otherwise"))
    )]
    NoManifest {
        /// Where it was looked for first.
        from: String,
        /// What was asked for.
        name: Option<String>,
    },
    /// Something in the request cannot be.
    #[error("{what} '{given}': {problem}")]
    Value {
        /// Which part.
        what: &'static str,
        /// As it was given.
        given: String,
        /// What is wrong with it.
        problem: String,
    },
}

impl From<InvalidServicePlan> for Error {
    fn from(invalid: InvalidServicePlan) -> Self {
        let InvalidServicePlan {
            what,
            given,
            problem,
        } = invalid;
        Self::Service(ServiceError::Value {
            what,
            given,
            problem,
        })
    }
}

impl ServiceError {
    /// Its row of the taxonomy.
    #[must_use]
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::Unknown { .. } => ErrorCode::ProcessNotFound,
            Self::Living { .. }
            | Self::Running { .. }
            | Self::PortTaken { .. }
            | Self::NoPort { .. }
            | Self::Dependency { .. } => ErrorCode::ProcessControl,
            Self::Start { code, .. } => *code,
            Self::Manifest { .. } | Self::NoManifest { .. } | Self::Value { .. } => {
                ErrorCode::Value
            }
        }
    }

    /// What to do about it, where we know.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Unknown { elsewhere, .. } if !elsewhere.is_empty() => Some(
                "names hold within a workspace: name that one by its id, or from its directory"
                    .to_owned(),
            ),
            Self::Unknown { .. } => Some("list the services to see which there are".to_owned()),
            Self::Living { .. } => Some("stop it first".to_owned()),
            Self::Running { .. } => Some("use ensure to reuse it, or restart".to_owned()),
            Self::PortTaken {
                service: Some(name),
                ..
            } => Some(format!(
                "stop '{name}' first, or ask for another port; a free one is leased with port \
                 'auto'"
            )),
            Self::PortTaken { service: None, .. } => Some(
                "it is not ours to end: end whoever holds it, or ask for another port; a free \
                 one is leased with port 'auto'"
                    .to_owned(),
            ),
            Self::NoPort { .. } => {
                Some("stop services that are not needed, or widen services.lease_ports".to_owned())
            }
            Self::Start { hint, .. } => hint.clone(),
            Self::NoManifest { name, .. } => {
                let name = name.as_deref().unwrap_or("web");
                Some(format!(
                    "write one, for example:\n[services.{name}]\ncommand = \"npm run dev\"\n\
                     port = 3000\nready = {{ http = \"/\" }}"
                ))
            }
            Self::Dependency { .. } | Self::Manifest { .. } | Self::Value { .. } => None,
        }
    }
}

/// A holder in words: `node (pid 42), "vite --port 3000"`.
pub(crate) fn describe(holder: &PortHolder) -> String {
    let who = match (holder.process.as_str(), holder.pid) {
        ("", None) => return "a process this user may not see".to_owned(),
        ("", Some(pid)) => format!("pid {pid}"),
        (process, None) => process.to_owned(),
        (process, Some(pid)) => format!("{process} (pid {pid})"),
    };
    if holder.command.is_empty() {
        return who;
    }
    format!("{who}, \"{}\"", holder.command)
}

fn names(known: &[String]) -> String {
    if known.is_empty() {
        return "none".to_owned();
    }
    known.join(", ")
}

fn others(elsewhere: &[String]) -> String {
    if elsewhere.is_empty() {
        return String::new();
    }
    format!("; in another workspace: {}", elsewhere.join(", "))
}

fn whose(service: Option<&str>, holder: &PortHolder) -> String {
    match service {
        Some(name) => format!("your service '{name}': {}", describe(holder)),
        None => describe(holder),
    }
}
