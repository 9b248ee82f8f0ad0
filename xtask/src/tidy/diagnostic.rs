//! The diagnostics of rules.

use std::fmt;

/// The severity of a diagnostic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Severity {
    /// Listed; does not fail.
    Warning,
    Failure,
}

/// One violation of one rule.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Diagnostic {
    pub(crate) severity: Severity,
    /// The file, relative to the repository's root, or the name of a crate.
    pub(crate) path: String,
    /// The line, from 1; 0 for the whole file.
    pub(crate) line: usize,
    /// What is wrong and what is allowed.
    pub(crate) message: String,
}

impl Diagnostic {
    /// A violation that fails.
    pub(crate) fn failure(place: &str, line: usize, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Failure,
            path: place.to_owned(),
            line,
            message: message.into(),
        }
    }

    /// A violation that is only listed.
    pub(crate) fn warning(place: &str, line: usize, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Warning,
            path: place.to_owned(),
            line,
            message: message.into(),
        }
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match self.severity {
            Severity::Warning => "warning",
            Severity::Failure => "failure",
        };
        match self.line {
            0 => write!(f, "{word}: {}: {}", self.path, self.message),
            line => write!(f, "{word}: {}:{line}: {}", self.path, self.message),
        }
    }
}
