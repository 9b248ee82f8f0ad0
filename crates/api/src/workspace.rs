//! The overlay of a command: its changes and their outcome.

use ostler_model::{
    AutorunReport, OverlayChange, OverlayConflict, OverlayOutcome, OverlayResponse,
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
    /// A response with at most `limit` changes and conflicts.
    #[must_use]
    pub fn new(response: OverlayResponse, limit: usize) -> Self {
        let mut body = Self {
            fate: OverlayOutcome::Open,
            totals: ChangeTotalsBody::default(),
            changes: Vec::new(),
            conflicts: Vec::new(),
            autorun: AutorunReport::default(),
            refused: false,
            diff: None,
            truncated: false,
        };
        match response {
            OverlayResponse::Changes(all) | OverlayResponse::Committed(all) => {
                let [created, changed, deleted] = all.totals;
                body.totals = ChangeTotalsBody {
                    created,
                    changed,
                    deleted,
                };
                body.fate = all.fate;
                body.autorun = all.autorun;
                body.changes = all.changes;
                body.changes.truncate(limit);
                body.truncated = (body.changes.len() as u64) < created + changed + deleted;
            }
            OverlayResponse::Autorun(report) => {
                body.autorun = report;
                body.refused = true;
            }
            OverlayResponse::Diff {
                text,
                truncated,
                autorun,
            } => {
                body.diff = Some(text);
                body.autorun = autorun;
                body.truncated = truncated;
            }
            OverlayResponse::Conflicts(mut conflicts) => {
                body.truncated = conflicts.len() > limit;
                conflicts.truncate(limit);
                body.conflicts = conflicts;
            }
            OverlayResponse::Discarded => body.fate = OverlayOutcome::Discarded,
        }
        body
    }

    /// The same without the diff, where that is reported elsewhere.
    #[must_use]
    pub fn without_diff(self) -> Self {
        Self { diff: None, ..self }
    }
}
