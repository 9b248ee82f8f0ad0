//! Errors of writing and reading journals.

use std::io;

use thiserror::Error;

use crate::pattern::BudgetExceeded;

/// Why something could not be appended, created, trimmed or repaired. Records that were
/// acknowledged before stay readable.
#[derive(Debug, Error)]
pub enum WriteError {
    /// A file system operation failed.
    #[error("cannot {action} {file}: {source}")]
    Io {
        /// The operation, a verb: `append to`, `create`.
        action: &'static str,
        /// The file's name within its directory.
        file: String,
        /// The error of the system call.
        #[source]
        source: io::Error,
    },
    /// Another process holds the writer lock.
    #[error("{file} is being written by another process")]
    Locked {
        /// The file's name within its directory.
        file: String,
    },
    /// The file has an unknown version or another format.
    #[error("{file} is not in a format this version can continue")]
    Format {
        /// The file's name within its directory.
        file: String,
    },
    /// A record cannot be serialized as JSON.
    #[error("a record cannot be spelled as JSON: {0}")]
    Encode(#[from] serde_json::Error),
    /// The file to be extended could not be read.
    #[error(transparent)]
    Read(#[from] Box<ReadError>),
}

/// Why something could not be read.
#[derive(Debug, Error)]
pub enum ReadError {
    /// The journal does not exist.
    #[error("there is no journal in {dir}")]
    Missing {
        /// The directory of the journal.
        dir: String,
    },
    /// A file system operation failed.
    #[error("cannot {action} {file}: {source}")]
    Io {
        /// The operation, a verb: `open`, `read`.
        action: &'static str,
        /// The file's name within its directory.
        file: String,
        /// The error of the system call.
        #[source]
        source: io::Error,
    },
    /// The file has an unknown version.
    #[error("{file} has version {found}; this program reads up to {known}")]
    Version {
        /// The file's name within its directory.
        file: String,
        /// The version of the file.
        found: u8,
        /// The newest version that is supported.
        known: u8,
    },
    /// A pattern with look-around or back-references exceeded its time budget.
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

    /// Whether the name was already taken.
    pub(crate) fn is_already_exists(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == io::ErrorKind::AlreadyExists)
    }

    /// Whether the disk is full, a quota is exhausted or the file system is read-only: writing
    /// cannot continue on this disk, and the command must not be disturbed.
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
