//! The decision on an overlay: committed or discarded. It is recorded before the layers are removed.
//!
//! On a full disk it can be that only their removal makes room for the record. There the decision is
//! made by renaming the upper layer, which needs no space: an overlay without one is decided. Its
//! record is written once the disk has room; until then the decision follows from the other records.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::{fs, io};

use ostler_model::{ChangeKind, OverlayChanges, OverlayOutcome};

use super::commit;
use super::compare::OverlayEdit;
use super::error::OverlayError;
use super::records::{
    BASELINE, BaselineRecord, CLOSED, CommitIntent, INTENT, LOG, OverlayDecision, StepInodes,
    io_error, load,
};
use super::remove::{detach_layer, remove_layers};
use super::store::{DECIDED_LISTED_MAX, OverlayStore, UPPER, WORK};
use crate::openat2::BeneathRoot;

impl OverlayStore {
    /// The decision, once there is one.
    pub(super) fn decision(&self) -> Result<Option<OverlayDecision>, OverlayError> {
        let recorded = OverlayDecision::load(&self.dir)?;
        if recorded.is_some() || !self.is_upper_gone() {
            return Ok(recorded);
        }
        let changes = if self.dir.join(INTENT).exists() {
            self.interrupted_changes()?
        } else {
            summarize(&[], 0, OverlayOutcome::Discarded)
        };
        Ok(Some(OverlayDecision { changes }))
    }

    fn is_upper_gone(&self) -> bool {
        let upper = fs::symlink_metadata(self.dir.join(UPPER));
        upper.is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
    }

    /// Ends a commit in its present state; returns its changes on the host.
    pub(super) fn interrupted_changes(&self) -> Result<OverlayChanges, OverlayError> {
        let damaged = |name| OverlayError::Damaged { name };
        let intent: CommitIntent = load(&self.dir, INTENT)?.ok_or_else(|| damaged(INTENT))?;
        let record: BaselineRecord = load(&self.dir, BASELINE)?.ok_or_else(|| damaged(BASELINE))?;
        let workspace = Path::new(OsStr::from_bytes(&record.workspace));
        let completed = match BeneathRoot::open(workspace) {
            Ok(mut host) => {
                let inodes = StepInodes::load(&self.dir)?;
                let completed = commit::completed_edits(&mut host, &intent, &inodes);
                commit::remove_temporaries(&mut host, &intent);
                completed
            }
            // The workspace was removed, with all that the commit had written.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(source) => return Err(io_error("cannot open", workspace, source)),
        };
        Ok(summarize(
            &completed,
            DECIDED_LISTED_MAX,
            OverlayOutcome::Committed,
        ))
    }

    /// Records the decision and removes what it made obsolete.
    pub(super) fn record_decision(&self, changes: OverlayChanges) -> Result<(), OverlayError> {
        let decision = OverlayDecision { changes };
        match decision.save(&self.dir) {
            Err(error) if error.is_disk_full() => {
                detach_layer(&self.dir, UPPER)
                    .map_err(|source| io_error("cannot rename", &self.dir.join(UPPER), source))?;
                self.complete_decision(decision)
            }
            saved => saved.and_then(|()| self.remove_records()),
        }
    }

    /// Removes what the decision made obsolete, and records it unless it is recorded. Where the disk
    /// is full even then, the next request tries again.
    pub(super) fn complete_decision(
        &self,
        mut decision: OverlayDecision,
    ) -> Result<(), OverlayError> {
        self.remove_both_layers()?;
        if OverlayDecision::load(&self.dir)?.is_none() {
            let mut saved = decision.save(&self.dir);
            if saved.as_ref().is_err_and(OverlayError::is_disk_full) {
                // Without the list, the record is a few hundred bytes.
                decision.changes.changes.clear();
                saved = decision.save(&self.dir);
            }
            match saved {
                Err(error) if error.is_disk_full() => return Ok(()),
                saved => saved?,
            }
        }
        self.remove_records()
    }

    /// Removes records that are obsolete after the decision, and the layers.
    fn remove_records(&self) -> Result<(), OverlayError> {
        for name in [INTENT, LOG, BASELINE, CLOSED] {
            match fs::remove_file(self.dir.join(name)) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(source) => return Err(io_error("cannot remove", &self.dir.join(name), source)),
            }
        }
        self.remove_both_layers()
    }

    fn remove_both_layers(&self) -> Result<(), OverlayError> {
        remove_layers(&self.dir, &[UPPER, WORK])
            .map_err(|source| io_error("cannot remove the layers in", &self.dir, source))
    }
}

/// The changes of these edits, at most `limit` of them listed.
pub(super) fn summarize(
    edits: &[OverlayEdit],
    limit: usize,
    fate: OverlayOutcome,
) -> OverlayChanges {
    let mut totals = [0; 3];
    let mut changes = Vec::new();
    for edit in edits {
        let change = edit.change();
        totals[match change.kind {
            ChangeKind::Created => 0,
            ChangeKind::Changed => 1,
            ChangeKind::Deleted => 2,
        }] += 1;
        if changes.len() < limit {
            changes.push(change);
        }
    }
    OverlayChanges {
        changes,
        totals,
        fate,
        ..OverlayChanges::default()
    }
}
