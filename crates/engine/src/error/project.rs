//! Errors of callers that are limited to projects.

use thiserror::Error;

/// A request for something outside the projects that its caller is limited to.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ProjectError {
    /// The caller sees what the request would change.
    #[error("it belongs to project '{project}', which the token may only read")]
    ReadOnly {
        /// The project.
        project: String,
    },
    /// What the request creates would belong to a project that the caller may not change.
    #[error("the token has no scope to change project '{project}'; allowed: {}", list(.allowed))]
    Denied {
        /// The project.
        project: String,
        /// Those that it may change.
        allowed: Vec<String>,
    },
    /// The caller is limited to several projects, and the request names none.
    #[error("the request names no project; allowed: {}", list(.allowed))]
    Unnamed {
        /// Those that it may change.
        allowed: Vec<String>,
    },
    /// A directory of no project that the caller sees.
    #[error("directory '{directory}' is in no project that the token has a scope for")]
    Directory {
        /// The directory as given.
        directory: String,
    },
}

fn list(projects: &[String]) -> String {
    match projects {
        [] => "none".to_owned(),
        projects => projects.join(", "),
    }
}

impl ProjectError {
    /// What to do about it, where known.
    pub(super) fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::ReadOnly { .. } => "a token with project:write for it may change it",
            Self::Denied { .. } => return None,
            Self::Unnamed { .. } => {
                "name one in the header Ostler-Project, or start with POST \
                 /api/v1/projects/{id}/execute"
            }
            Self::Directory { .. } => {
                "a project whose name is an absolute path is that directory and all below it"
            }
        };
        Some(hint.to_owned())
    }
}
