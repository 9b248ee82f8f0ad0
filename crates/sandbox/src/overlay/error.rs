//! The errors of overlays.

use std::io;

use ostler_model::ByteString;

/// An overlay that cannot be created, read, committed or discarded.
#[derive(Debug, thiserror::Error)]
pub enum OverlayError {
    /// The execution has no overlay.
    #[error("there is no overlay")]
    None,
    /// The changes were already committed or discarded.
    #[error("the changes were {} already", if *committed { "committed" } else { "discarded" })]
    Decided {
        /// Whether the changes are on the host.
        committed: bool,
    },
    /// More entries than the limit.
    #[error("{what} has more than {limit} entries")]
    TooMany {
        /// `the workspace` or `the overlay`.
        what: &'static str,
        /// The limit.
        limit: usize,
    },
    /// The command changed a protected path; nothing was committed.
    #[error("{path} is protected")]
    Protected {
        /// The path, relative to the workspace.
        path: ByteString,
    },
    /// The workspace has overlay attributes, which the kernel would obey.
    #[error("{path} has attributes user.overlay.*, which hide files from an overlay")]
    Marked {
        /// The path, relative to the workspace; empty for the workspace itself.
        path: ByteString,
    },
    /// Another process has locked the workspace, or a directory above it; nothing was committed.
    #[error("another process has locked {path}")]
    Locked {
        /// The directory.
        path: ByteString,
    },
    /// One of our records is damaged.
    #[error("the record {name} is damaged")]
    Damaged {
        /// The name of the file.
        name: &'static str,
    },
    /// A commit was interrupted; the next list reports the state of the host.
    #[error("{what} {path}: {source} ({done} of {of} changes are on the host)")]
    Interrupted {
        /// The operation.
        what: &'static str,
        /// The path it was applied to, relative to the workspace.
        path: ByteString,
        /// The system's error.
        source: io::Error,
        /// How many changes are on the host.
        done: usize,
        /// How many changes there are.
        of: usize,
    },
    /// A file could not be read or written; the host is unchanged.
    #[error("{what} {path}: {source}")]
    Io {
        /// The operation.
        what: &'static str,
        /// The path it was applied to.
        path: ByteString,
        /// The system's error.
        source: io::Error,
    },
}

impl OverlayError {
    /// Whether the disk, or a quota, is full.
    pub(super) fn is_disk_full(&self) -> bool {
        matches!(self, Self::Io { source, .. } if is_disk_full(source))
    }
}

/// Whether the disk, or a quota, is full.
pub(super) fn is_disk_full(error: &io::Error) -> bool {
    use io::ErrorKind::{QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded)
}
