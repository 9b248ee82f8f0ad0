//! Errors of the search for a program.

use thiserror::Error;

/// Why a program cannot be executed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ProgramError {
    /// In none of the directories, or no such path.
    #[error("{program}: {}", if *searched { "command not found" } else { "no such file" })]
    NotFound {
        /// The program as given.
        program: String,
        /// Whether it was looked up in `PATH`.
        searched: bool,
        /// An existing program with a similar name.
        suggestion: Option<String>,
    },
    /// It exists and is not an executable file.
    #[error("{program}: {problem}")]
    NotAFile {
        /// The program as given.
        program: String,
        /// What it is instead.
        problem: &'static str,
    },
    /// It exists without execute permission.
    #[error("{program}: permission denied")]
    Permission {
        /// The program as given.
        program: String,
    },
}

impl ProgramError {
    /// Whether there is something of that name, which cannot be executed.
    pub(super) const fn is_not_executable(&self) -> bool {
        match self {
            Self::NotFound { .. } => false,
            Self::NotAFile { .. } | Self::Permission { .. } => true,
        }
    }

    /// What to do about it, where known.
    pub(super) fn hint(&self) -> Option<String> {
        match self {
            Self::NotFound {
                suggestion: Some(nearest),
                ..
            } => Some(format!("did you mean '{nearest}'?")),
            Self::NotFound { program, .. } if program.contains(char::is_whitespace) => Some(
                "program and arguments are separate words; for a command line, ask for a shell"
                    .to_owned(),
            ),
            Self::NotFound { .. } | Self::NotAFile { .. } => None,
            Self::Permission { .. } => Some("make it executable, or name another".to_owned()),
        }
    }
}
