//! [`OverlayError`].

use std::io;

use ostler_model::ByteString;

/// An overlay that cannot be made, read or decided about.
#[derive(Debug, thiserror::Error)]
pub enum OverlayError {
    /// The execution has none.
    #[error("there is no overlay")]
    None,
    /// It was committed or discarded before.
    #[error("the changes were {} already", if *committed { "committed" } else { "discarded" })]
    Decided {
        /// Whether they are on the host.
        committed: bool,
    },
    /// More entries than are looked at.
    #[error("{what} has more than {limit} entries")]
    TooMany {
        /// `the workspace` or `the overlay`.
        what: &'static str,
        /// How many there may be.
        limit: usize,
    },
    /// The command changed what is protected; nothing was committed.
    #[error("{path} is protected")]
    Protected {
        /// Relative to the workspace.
        path: ByteString,
    },
    /// The workspace has attributes that the overlay would obey.
    #[error("{path} has attributes user.overlay.*, which hide files from an overlay")]
    Marked {
        /// Relative to the workspace; empty for itself.
        path: ByteString,
    },
    /// A record of ours makes no sense.
    #[error("the record {name} is damaged")]
    Damaged {
        /// Which file.
        name: &'static str,
    },
    /// A commit stopped on its way; what is on the host is told by the next list.
    #[error("{what} {path}: {source} ({done} of {of} changes are on the host)")]
    Interrupted {
        /// What was tried.
        what: &'static str,
        /// On what, relative to the workspace.
        path: ByteString,
        /// What the system said.
        source: io::Error,
        /// How many changes are on the host.
        done: usize,
        /// Of how many.
        of: usize,
    },
    /// A file could not be read or written; the host is unchanged.
    #[error("{what} {path}: {source}")]
    Io {
        /// What was tried.
        what: &'static str,
        /// On what.
        path: ByteString,
        /// What the system said.
        source: io::Error,
    },
}
