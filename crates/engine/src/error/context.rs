//! Errors of contexts.

use ostler_model::{ContextId, ErrorCode};
use thiserror::Error;

/// A request about a context that could not be fulfilled.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ContextError {
    /// Unknown, or of another owner; the error is the same, so that foreign ids cannot be probed.
    #[error("Context not found or access denied")]
    NotFound,
    /// A field of the request is invalid.
    #[error("{field} '{given}': {problem}")]
    Value {
        /// The field, for example `project`.
        field: &'static str,
        /// The value as given.
        given: String,
        /// The problem with it.
        problem: String,
    },
    /// The project has a context already, created with another request.
    #[error("project '{project}' has context {id} already, which differs in {differs}")]
    Differs {
        /// The context.
        id: ContextId,
        /// The project.
        project: String,
        /// The field that differs.
        differs: &'static str,
    },
    /// The principal has as many contexts as it may have.
    #[error("there are {count} contexts already, at most {limit} are allowed")]
    TooMany {
        /// How many there are.
        count: usize,
        /// The limit.
        limit: usize,
    },
    /// It is in use.
    #[error("context {id} is in use{}", list(.executions))]
    InUse {
        /// The context.
        id: ContextId,
        /// The short ids of executions that use it, the first ones.
        executions: Vec<String>,
    },
    /// It is being created, or is ending.
    #[error("context {id} is {state}")]
    NotReady {
        /// The context.
        id: ContextId,
        /// Its state: `creating` or `ending`.
        state: &'static str,
    },
    /// The check before a use failed; it ends.
    #[error("context {id} cannot be used any more: {problem}")]
    Unhealthy {
        /// The context.
        id: ContextId,
        /// What the check found.
        problem: String,
    },
    /// Its files could not be removed.
    #[error("the files of context {id} are not all removed: {problem}")]
    NotRemoved {
        /// The context.
        id: ContextId,
        /// What prevented it.
        problem: String,
    },
}

fn list(executions: &[String]) -> String {
    match executions {
        [] => String::new(),
        executions => format!(" by {}", executions.join(", ")),
    }
}

impl ContextError {
    /// Its stable error code.
    pub(super) const fn code(&self) -> ErrorCode {
        match self {
            Self::NotFound => ErrorCode::ProcessNotFound,
            Self::Value { .. } | Self::Differs { .. } => ErrorCode::Value,
            Self::TooMany { .. } => ErrorCode::QuotaExceeded,
            Self::InUse { .. } | Self::NotRemoved { .. } => ErrorCode::ProcessClean,
            Self::NotReady { .. } | Self::Unhealthy { .. } => ErrorCode::ProcessControl,
        }
    }

    /// What to do about it, where known.
    pub(super) fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::NotFound => "list the contexts to see which there are",
            Self::Value { .. } => return None,
            Self::Differs { .. } => {
                "name the project alone to get it as it is, or remove it and create it anew"
            }
            Self::TooMany { .. } => "remove one that is not needed, or wait until one was idle",
            Self::InUse { .. } => {
                "stop what runs in it, decide about the overlays of what ran in it, or remove it with force"
            }
            Self::NotReady { .. } | Self::Unhealthy { .. } => "create a context for the project",
            Self::NotRemoved { .. } => "remove what is named there, and remove the context again",
        };
        Some(hint.to_owned())
    }
}
