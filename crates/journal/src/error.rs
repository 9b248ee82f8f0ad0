//! Why a journal could not be written or read.

use std::io;

use thiserror::Error;

use crate::pattern::BudgetExceeded;

/// Why something could not be appended, created, trimmed or repaired. What was acknowledged
/// before stays readable.
#[derive(Debug, Error)]
pub enum WriteError {
    /// The file system refused.
    #[error("cannot {action} {file}: {source}")]
    Io {
        /// What was tried, a verb: `append to`, `create`.
        action: &'static str,
        /// The file's name within its directory.
        file: String,
        /// The kernel's answer.
        #[source]
        source: io::Error,
    },
    /// Another process writes here.
    #[error("{file} is being written by another process")]
    Locked {
        /// The file's name within its directory.
        file: String,
    },
    /// The file begins with a version this program does not know, or with something else.
    #[error("{file} is not in a format this version can continue")]
    Format {
        /// The file's name within its directory.
        file: String,
    },
    /// A record cannot be spelled as JSON.
    #[error("a record cannot be spelled as JSON: {0}")]
    Encode(#[from] serde_json::Error),
    /// What was to be extended could not be read.
    #[error(transparent)]
    Read(#[from] Box<ReadError>),
}

/// Why something could not be read.
#[derive(Debug, Error)]
pub enum ReadError {
    /// There is no such journal.
    #[error("there is no journal in {dir}")]
    Missing {
        /// The directory asked for.
        dir: String,
    },
    /// The file system refused.
    #[error("cannot {action} {file}: {source}")]
    Io {
        /// What was tried, a verb: `open`, `read`.
        action: &'static str,
        /// The file's name within its directory.
        file: String,
        /// The kernel's answer.
        #[source]
        source: io::Error,
    },
    /// The file begins with a version this program does not know.
    #[error("{file} has version {found}; this program reads up to {known}")]
    Version {
        /// The file's name within its directory.
        file: String,
        /// The version found.
        found: u8,
        /// The newest version known.
        known: u8,
    },
    /// A look-around or back-reference pattern took longer than its budget.
    #[error(transparent)]
    Budget(#[from] BudgetExceeded),
}

impl WriteError {
    pub(crate) fn io(
        action: &'static str,
        file: impl Into<String>,
        source: impl Into<io::Error>,
    ) -> Self {
        Self::Io {
            action,
            file: file.into(),
            source: source.into(),
        }
    }

    /// Whether something of that name was there already.
    pub(crate) fn is_taken(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == io::ErrorKind::AlreadyExists)
    }

    /// Whether the disk is full, a quota is used up or the file system is read-only: writing
    /// cannot go on here, and the command must not be disturbed.
    #[must_use]
    pub fn is_storage(&self) -> bool {
        matches!(self, Self::Io { .. })
    }
}

impl From<ReadError> for WriteError {
    fn from(error: ReadError) -> Self {
        Self::Read(Box::new(error))
    }
}

impl ReadError {
    pub(crate) fn io(
        action: &'static str,
        file: impl Into<String>,
        source: impl Into<io::Error>,
    ) -> Self {
        Self::Io {
            action,
            file: file.into(),
            source: source.into(),
        }
    }
}
