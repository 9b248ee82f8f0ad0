//! Errors of service requests.

use ostler_model::{ErrorCode, PortHolder};

use crate::service_names;

/// A request for a service that could not be carried out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ServiceError {
    /// No service of this name runs, and none is defined.
    #[error("no service '{name}'; known: {}{}", names(.known), others(.elsewhere))]
    Unknown {
        /// The name as given.
        name: String,
        /// The known names, at most 20.
        known: Vec<String>,
        /// Running services of this name in other workspaces: id and directory.
        elsewhere: Vec<String>,
    },
    /// The service runs; only an ended one can be dismissed.
    #[error("'{name}' has not ended, as {id}: only ended services are dismissed")]
    Living {
        /// The service's name.
        name: String,
        /// Its execution's id.
        id: String,
    },
    /// A service of this name runs already.
    #[error("service '{name}' runs already as {id}")]
    Running {
        /// The service's name.
        name: String,
        /// Its short id.
        id: String,
    },
    /// Another process holds the requested port; nothing was started or ended.
    #[error("port {port} is held by {}", whose(.service.as_deref(), .holder))]
    PortTaken {
        /// The port.
        port: u16,
        /// The process that holds it.
        holder: Box<PortHolder>,
        /// The name of the caller's own service that holds it, if it is one.
        service: Option<String>,
    },
    /// Every port of the lease range is taken.
    #[error("no port from {first} to {last} is free to lease")]
    NoPort {
        /// The first port of the range.
        first: u16,
        /// The last port of the range.
        last: u16,
    },
    /// One of several services could not be started.
    #[error("service '{name}': {problem}")]
    Start {
        /// The service's name.
        name: String,
        /// The cause, for people.
        problem: String,
        /// The error code of the cause.
        code: ErrorCode,
        /// The hint of the cause.
        hint: Option<String>,
    },
    /// A dependency is not available.
    #[error("it depends on '{on}', which {problem}")]
    Dependency {
        /// The dependency's name.
        on: String,
        /// The cause, for people.
        problem: String,
    },
    /// It was stopped while it waited to be started.
    #[error("it was stopped before it started")]
    StoppedBeforeStart,
    /// An invalid definition file.
    #[error("{file}: {problem}")]
    Manifest {
        /// The file.
        file: String,
        /// The cause, with its line.
        problem: String,
    },
    /// No definition exists in the caller's workspace.
    #[error(
        "no ostler.toml in {from} or above it, up to the home directory or /{}{}",
        wrong_type.as_ref().map_or_else(String::new, |it| format!("; {it}")),
        name.as_ref().map_or_else(String::new, |it| format!("; and no service '{it}' is defined otherwise"))
    )]
    NoManifest {
        /// The directory where the search began.
        from: String,
        /// What has the name of the file and is none: `/project/ostler.toml is a directory, not …`.
        wrong_type: Option<String>,
        /// The requested name.
        name: Option<String>,
    },
    /// A part of the request is invalid.
    #[error("{what} '{given}': {problem}")]
    Value {
        /// The part.
        what: &'static str,
        /// The value as given.
        given: String,
        /// The problem with it.
        problem: String,
    },
}

impl ServiceError {
    /// Its stable error code.
    #[must_use]
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::Unknown { .. } => ErrorCode::ProcessNotFound,
            Self::Living { .. }
            | Self::Running { .. }
            | Self::PortTaken { .. }
            | Self::NoPort { .. }
            | Self::StoppedBeforeStart
            | Self::Dependency { .. } => ErrorCode::ProcessControl,
            Self::Start { code, .. } => *code,
            Self::Manifest { .. } | Self::NoManifest { .. } | Self::Value { .. } => {
                ErrorCode::Value
            }
        }
    }

    /// What to do about it, where known.
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
                holder,
                ..
            } => {
                // Another workspace may have a service of that name.
                let id = holder.execution.map(|id| id.short());
                let service = id.as_ref().unwrap_or(name);
                Some(format!(
                    "stop '{service}' first, or ask for another port; a free one is leased with \
                     port 'auto'"
                ))
            }
            Self::PortTaken {
                service: None,
                holder,
                ..
            } if holder.execution.is_some() => holder.execution.map(|id| {
                let id = id.short();
                format!(
                    "stop '{id}' first, or ask for another port; a free one is leased with port \
                     'auto'"
                )
            }),
            Self::PortTaken { service: None, .. } => Some(
                "it is not ours to end: end whoever holds it, or ask for another port; a free \
                 one is leased with port 'auto'"
                    .to_owned(),
            ),
            Self::NoPort { .. } => {
                Some("stop services that are not needed, or widen services.lease_ports".to_owned())
            }
            Self::Start { hint, .. } => hint.clone(),
            Self::NoManifest {
                name: Some(name), ..
            } if let Err(rule) = service_names::check(name) => {
                Some(format!("no service can be named '{name}': {rule}"))
            }
            Self::NoManifest { name, .. } => {
                let name = name.as_deref().unwrap_or("web");
                Some(format!(
                    "write one, for example:\n[services.{name}]\ncommand = \"npm run dev\"\n\
                     port = 3000\nready = {{ http = \"/\" }}"
                ))
            }
            Self::StoppedBeforeStart
            | Self::Dependency { .. }
            | Self::Manifest { .. }
            | Self::Value { .. } => None,
        }
    }
}

/// A port holder as text: `node (pid 42), "vite --port 3000"`.
pub(crate) fn describe_port_holder(holder: &PortHolder) -> String {
    let who = match (holder.process.as_str(), holder.pid) {
        ("", None) => return "a process this user may not see".to_owned(),
        ("", Some(pid)) => format!("pid {pid}"),
        (process, None) => process.to_owned(),
        (process, Some(pid)) => format!("{process} (pid {pid})"),
    };
    let of = holder
        .execution
        .map_or_else(String::new, |id| format!(" of {}", id.short()));
    if holder.command.is_empty() {
        return format!("{who}{of}");
    }
    format!("{who}{of}, \"{}\"", holder.command)
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
        Some(name) => format!("your service '{name}': {}", describe_port_holder(holder)),
        None => describe_port_holder(holder),
    }
}
