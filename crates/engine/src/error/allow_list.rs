//! Errors of the allow list.

use thiserror::Error;

/// Why the allow list refuses a command.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum AllowListError {
    /// The program is not on the list.
    #[error("'{program}' is not an allowed command")]
    NotListed {
        /// The program as given, or as found behind a wrapper.
        program: String,
        /// The list.
        allowed: Vec<String>,
    },
    /// A path where only names are listed, or a path to another file.
    #[error("'{program}' is a path; allowed commands are given by name")]
    Path {
        /// The path as given.
        program: String,
        /// The list.
        allowed: Vec<String>,
    },
    /// A listed wrapper whose wrapped program cannot be determined.
    #[error("'{program}' is allowed, and not with {what}")]
    Wrapper {
        /// The wrapper.
        program: String,
        /// Its arguments.
        what: String,
    },
    /// A variable that changes which code runs.
    #[error("variable '{name}' cannot be set while a list of allowed commands is")]
    Variable {
        /// The variable's name.
        name: String,
    },
    /// A shell script, which cannot be checked against the list.
    #[error("shell scripts are refused while a list of allowed commands is set")]
    Script {
        /// The list.
        allowed: Vec<String>,
    },
}

impl AllowListError {
    /// What to do about it, where known.
    pub(super) fn hint(&self) -> Option<String> {
        match self {
            Self::NotListed { allowed, .. }
            | Self::Path { allowed, .. }
            | Self::Script { allowed } => Some(format!("allowed commands: {}", allowed.join(", "))),
            Self::Wrapper { .. } => Some("name the program itself".to_owned()),
            Self::Variable { .. } => Some("leave it out".to_owned()),
        }
    }
}
