//! The overlay of a workspace: the changes a command made in it, and their commit or discard.

use serde::{Deserialize, Serialize};

use crate::autorun::AutorunReport;
use crate::byte_string::ByteString;
use crate::file_kind::FileKind;

/// One path at which the overlay differs from the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OverlayChange {
    /// The path relative to the workspace.
    pub path: ByteString,
    /// The kind of change.
    pub kind: ChangeKind,
    /// The type of the file now, or before the change where it was deleted.
    pub what: FileKind,
    /// The size in bytes now, or before the change where it was deleted; 0 if it is not a regular
    /// file.
    pub bytes: u64,
    /// The size in bytes before the change, where the path existed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_before: Option<u64>,
}

/// The kind of change of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    /// The path did not exist before.
    Created,
    /// Its content, mode or link target differs.
    Changed,
    /// The path no longer exists.
    Deleted,
}

/// A path that was changed on the host since the command started: while there is one, nothing is
/// committed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OverlayConflict {
    /// The path relative to the workspace.
    pub path: ByteString,
    /// What differs from the host as the command saw it at its start.
    pub reason: ConflictReason,
}

/// What differs on the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConflictReason {
    /// Another inode has this path.
    Replaced,
    /// Its modification time, change time or size differs.
    Modified,
    /// The path exists and did not before.
    Appeared,
    /// The path no longer exists.
    Vanished,
}

/// The changes of one workspace, sorted by path.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct OverlayChanges {
    /// The changes, at most as many as requested.
    pub changes: Vec<OverlayChange>,
    /// The total numbers of created, changed and deleted paths.
    pub totals: [u64; 3],
    /// Whether the changes are open, committed or discarded.
    pub fate: OverlayOutcome,
    /// Autorun files among the changes; of a commit, those that were allowed.
    #[serde(default, skip_serializing_if = "AutorunReport::is_empty")]
    pub autorun: AutorunReport,
    /// What changed on the host since the command started, among the paths that the command changed
    /// too and the directories above them, while the changes are open: because of these, a commit
    /// writes nothing, and a diff compares with another file than the command saw.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed_on_host: Vec<OverlayConflict>,
}

/// The outcome of the changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OverlayOutcome {
    /// Not decided yet.
    #[default]
    Open,
    /// Written to the host.
    Committed,
    /// The changes were discarded.
    Discarded,
}

/// A request about the overlay of a workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum OverlayRequest {
    /// Lists the changes.
    Changes {
        /// The most changes to list.
        limit: usize,
    },
    /// Produces a unified diff of text files.
    Diff {
        /// Paths relative to the workspace; empty means all.
        paths: Vec<ByteString>,
        /// The most bytes of the diff.
        limit_bytes: usize,
    },
    /// Writes the changes to the host: all of them, or none where the host changed meanwhile.
    Commit {
        /// Whether autorun files are committed too.
        allow_autorun: bool,
    },
    /// Discards the changes.
    Discard,
}

/// The response to an [`OverlayRequest`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum OverlayResponse {
    /// The changes.
    Changes(OverlayChanges),
    /// The diff.
    Diff {
        /// A unified diff; a line `Binary files a/x and b/x differ` for a file that is not text.
        text: String,
        /// Whether the diff was cut at the limit.
        truncated: bool,
        /// All changes, none of them listed; of the changes on the host, those at the paths of the
        /// request.
        changes: OverlayChanges,
    },
    /// Nothing was committed: the changes, of which none is listed, hold autorun files that were not
    /// allowed.
    Autorun(OverlayChanges),
    /// The changes were written to the host.
    Committed(OverlayChanges),
    /// Nothing was committed: paths of the changes, of which none is listed, changed on the host
    /// meanwhile.
    Conflicts(OverlayChanges),
    /// The changes were discarded.
    Discarded,
}

impl OverlayResponse {
    /// The changes that it lists; none where they were discarded.
    pub const fn changes_mut(&mut self) -> Option<&mut OverlayChanges> {
        match self {
            Self::Changes(changes)
            | Self::Diff { changes, .. }
            | Self::Autorun(changes)
            | Self::Committed(changes)
            | Self::Conflicts(changes) => Some(changes),
            Self::Discarded => None,
        }
    }
}
