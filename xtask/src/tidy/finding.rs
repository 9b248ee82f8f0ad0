//! What a rule found.

use std::fmt;

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Weight {
    /// Listed; does not fail.
    Warning,
    /// Fails.
    Failure,
}

/// One breach of one rule at one place.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    /// How bad.
    pub(crate) weight: Weight,
    /// The file, from the repository's root, or a crate's name.
    pub(crate) place: String,
    /// The line, from 1; 0 for the whole.
    pub(crate) line: usize,
    /// What is wrong and what is allowed.
    pub(crate) message: String,
}

impl Finding {
    /// A breach that fails.
    pub(crate) fn failure(place: &str, line: usize, message: impl Into<String>) -> Self {
        Self {
            weight: Weight::Failure,
            place: place.to_owned(),
            line,
            message: message.into(),
        }
    }

    /// A breach that is only listed.
    pub(crate) fn warning(place: &str, line: usize, message: impl Into<String>) -> Self {
        Self {
            weight: Weight::Warning,
            place: place.to_owned(),
            line,
            message: message.into(),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match self.weight {
            Weight::Warning => "warning",
            Weight::Failure => "failure",
        };
        match self.line {
            0 => write!(f, "{word}: {}: {}", self.place, self.message),
            line => write!(f, "{word}: {}:{line}: {}", self.place, self.message),
        }
    }
}
