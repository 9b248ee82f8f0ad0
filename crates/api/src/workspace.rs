//! The overlay of a command: its changes and their outcome.

use ostler_model::{
    AutorunReport, OverlayChange, OverlayChanges, OverlayConflict, OverlayOutcome, OverlayResponse,
};
use serde::{Deserialize, Serialize};

/// The response of every `/executions/{id}/workspace` route.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkspaceBody {
    /// The outcome of the changes.
    pub fate: OverlayOutcome,
    /// The total number of changes.
    pub totals: ChangeTotalsBody,
    /// At most as many changes as requested, sorted by path.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<OverlayChange>,
    /// The conflicts because of which nothing was committed: what changed on the host meanwhile.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conflicts: Vec<OverlayConflict>,
    /// What changed on the host since the command started, among the paths of the answer that the
    /// command changed too, and the directories above them. Because of these nothing could be
    /// committed, and the diff compares with what is on the host now, not with what the command saw.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed_on_host: Vec<OverlayConflict>,
    /// The changed files that tools run or follow automatically.
    #[serde(default, skip_serializing_if = "AutorunReport::is_empty")]
    pub autorun: AutorunReport,
    /// Whether nothing was committed because of those.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub refused: bool,
    /// The changes as a unified diff.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    /// Whether something was omitted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
}

/// The number of changes by kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ChangeTotalsBody {
    /// The number of created paths.
    pub created: u64,
    /// The number of paths whose content, mode or target changed.
    pub changed: u64,
    /// The number of removed paths.
    pub deleted: u64,
}

impl WorkspaceBody {
    /// A response with at most `limit` changes, and as many changes of the host.
    #[must_use]
    pub fn new(response: OverlayResponse, limit: usize) -> Self {
        match response {
            OverlayResponse::Changes(all) | OverlayResponse::Committed(all) => {
                let listed = all.changes.len().min(limit) as u64;
                let unlisted = listed < all.totals.iter().sum();
                let mut body = Self::of(all, limit);
                body.truncated |= unlisted;
                body
            }
            OverlayResponse::Autorun(all) => {
                let mut body = Self::of(all, limit);
                body.refused = true;
                body
            }
            OverlayResponse::Diff {
                text,
                truncated,
                changes,
            } => {
                let mut body = Self::of(changes, limit);
                body.diff = Some(text);
                body.truncated |= truncated;
                body
            }
            OverlayResponse::Conflicts(all) => {
                let mut body = Self::of(all, limit);
                body.conflicts = std::mem::take(&mut body.changed_on_host);
                body
            }
            OverlayResponse::Discarded => {
                let fate = OverlayOutcome::Discarded;
                let none = OverlayChanges::default();
                Self::of(OverlayChanges { fate, ..none }, limit)
            }
        }
    }

    fn of(mut all: OverlayChanges, limit: usize) -> Self {
        let [created, changed, deleted] = all.totals;
        let truncated = all.changed_on_host.len() > limit;
        all.changed_on_host.truncate(limit);
        all.changes.truncate(limit);
        Self {
            fate: all.fate,
            totals: ChangeTotalsBody {
                created,
                changed,
                deleted,
            },
            changes: all.changes,
            conflicts: Vec::new(),
            changed_on_host: all.changed_on_host,
            autorun: all.autorun,
            refused: false,
            diff: None,
            truncated,
        }
    }

    /// The same without the diff, where that is reported elsewhere.
    #[must_use]
    pub fn without_diff(self) -> Self {
        Self { diff: None, ..self }
    }
}
