//! Errors of a request's arguments.

use std::path::PathBuf;

use thiserror::Error;

/// An invalid argument of a request; every variant says what is allowed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ArgumentError {
    /// The command is empty.
    #[error("the command is empty")]
    EmptyCommand,
    /// The id is empty.
    #[error("the process id is empty")]
    EmptyId,
    /// A wait for ready on an execution that is not a service.
    #[error("{id} is no service: there is nothing it could be ready for")]
    NoService {
        /// Its short id.
        id: String,
    },
    /// The list of ids is empty.
    #[error("the list of process ids is empty")]
    EmptyIdList,
    /// A NUL byte where the kernel ends a string.
    #[error("{what} contains a NUL byte")]
    Nul {
        /// The argument, for example `argument 2`.
        what: String,
    },
    /// More bytes than allowed.
    #[error("{what} is {bytes} bytes long, at most {limit} are allowed")]
    TooLong {
        /// The argument, for example `argument 2`.
        what: String,
        /// Its length in bytes.
        bytes: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// More items than allowed.
    #[error("{count} {what} were given, at most {limit} are allowed")]
    TooMany {
        /// The kind of item, in the plural.
        what: &'static str,
        /// Their number.
        count: usize,
        /// The limit.
        limit: usize,
    },
    /// The working directory is invalid.
    #[error("working directory '{}': {problem}", path.display())]
    Directory {
        /// The path as given.
        path: PathBuf,
        /// The problem with it.
        problem: &'static str,
    },
    /// The working directory cannot be entered (permissions).
    #[error("working directory '{}': permission denied", path.display())]
    DirectoryPermission {
        /// The path as given.
        path: PathBuf,
    },
    /// An invalid name of an environment variable.
    #[error("'{name}' is no name for an environment variable: {problem}")]
    Variable {
        /// The name as given.
        name: String,
        /// The problem with it.
        problem: &'static str,
    },
    /// An unknown encoding label.
    #[error("'{label}' is no encoding")]
    Encoding {
        /// The label as given.
        label: String,
        /// The most similar known label.
        suggestion: Option<String>,
    },
    /// A duration out of range.
    #[error("{what} is {given}; {allowed}")]
    Duration {
        /// The argument, for example `timeout`.
        what: &'static str,
        /// The value as given.
        given: String,
        /// The allowed range, as text.
        allowed: String,
    },
    /// An invalid label or terminal size.
    #[error("{what}: {problem}")]
    Invalid {
        /// The argument, for example `label 2`.
        what: String,
        /// The problem with it.
        problem: &'static str,
    },
}

impl ArgumentError {
    /// What to do about it, where known.
    pub(super) fn hint(&self) -> Option<String> {
        match self {
            Self::EmptyCommand => Some("give a program, for example [\"ls\", \"-l\"]".into()),
            Self::Encoding { suggestion, .. } => Some(suggestion.as_ref().map_or_else(
                || "give a WHATWG label such as utf-8, gbk or shift_jis, or auto".to_owned(),
                |nearest| format!("did you mean '{nearest}'?"),
            )),
            Self::TooLong { .. } => {
                Some("pass large data on standard input or in a file".to_owned())
            }
            Self::Directory { .. } | Self::DirectoryPermission { .. } => Some(
                "give the absolute path of a directory that exists and may be entered".to_owned(),
            ),
            Self::EmptyId
            | Self::EmptyIdList
            | Self::NoService { .. }
            | Self::Nul { .. }
            | Self::TooMany { .. }
            | Self::Variable { .. }
            | Self::Duration { .. }
            | Self::Invalid { .. } => None,
        }
    }
}
