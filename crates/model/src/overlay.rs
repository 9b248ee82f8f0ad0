//! What a command did to a workspace whose writes were kept apart, and what became of it.

use serde::{Deserialize, Serialize};

use crate::autorun::AutorunReport;
use crate::byte_string::ByteString;

/// One path that the overlay holds differently from the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OverlayChange {
    /// Relative to the workspace.
    pub path: ByteString,
    /// What happened to it.
    pub kind: ChangeKind,
    /// What it is now, or was where it was deleted.
    pub what: FileKind,
    /// Bytes now, or before where it was deleted; 0 for what is no regular file.
    pub bytes: u64,
    /// Bytes before, where there was something before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_before: Option<u64>,
}

/// What happened to a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    /// It was not there before.
    Created,
    /// Its content, mode or target is another.
    Changed,
    /// It is gone.
    Deleted,
}

/// What a path is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
    /// A named pipe or a socket; listed and never committed.
    Special,
}

/// A path that the host changed meanwhile: nothing is committed while there is one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OverlayConflict {
    /// Relative to the workspace.
    pub path: ByteString,
    /// What differs from what the command saw at its start.
    pub reason: ConflictReason,
}

/// What differs on the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConflictReason {
    /// Another inode stands there.
    Replaced,
    /// Its time of modification, change or its size differs.
    Modified,
    /// Something stands where nothing was.
    Appeared,
    /// Nothing stands where something was.
    Vanished,
}

/// Changes of one workspace, sorted by path.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct OverlayChanges {
    /// At most as many as were asked for.
    pub changes: Vec<OverlayChange>,
    /// How many there are in all: created, changed, deleted.
    pub totals: [u64; 3],
    /// What became of them.
    pub fate: OverlayOutcome,
    /// What of them is run or obeyed unasked; of a commit, what was allowed.
    #[serde(default, skip_serializing_if = "AutorunReport::is_empty")]
    pub autorun: AutorunReport,
}

/// What became of the changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OverlayOutcome {
    /// They wait for a decision.
    #[default]
    Open,
    /// They are on the host.
    Committed,
    /// They are gone.
    Discarded,
}

/// What to do with a workspace whose writes were kept apart.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum OverlayRequest {
    /// List changes, at most this many.
    Changes {
        /// The most to list.
        limit: usize,
    },
    /// A unified diff of text files, of these paths or all, at most this many bytes.
    Diff {
        /// Relative paths; empty means all.
        paths: Vec<ByteString>,
        /// The most bytes.
        limit_bytes: usize,
    },
    /// Put the changes on the host, all or, where the host changed meanwhile, none.
    Commit {
        /// Also what is run or obeyed unasked.
        allow_autorun: bool,
    },
    /// Forget them.
    Discard,
}

/// What came of a [`OverlayRequest`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum OverlayResponse {
    /// The list.
    Changes(OverlayChanges),
    /// The text, and whether it was cut short.
    Diff {
        /// A unified diff; a line `Binary files a/x and b/x differ` for what is no text.
        text: String,
        /// Whether more was to be said.
        truncated: bool,
        /// What of all changes is run or obeyed unasked.
        autorun: AutorunReport,
    },
    /// Nothing was committed: this is among the changes, and was not allowed.
    Autorun(AutorunReport),
    /// They are on the host.
    Committed(OverlayChanges),
    /// Nothing was committed: the host changed meanwhile.
    Conflicts(Vec<OverlayConflict>),
    /// They are gone.
    Discarded,
}
