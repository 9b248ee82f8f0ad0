//! Entries of the ledger about contexts.

use std::mem::discriminant;

use ostler_journal::LedgerEntry;
use ostler_lifecycle::context::ContextState;
use ostler_model::{ContextStage, Event, Owner, Timestamp};

use super::record::ContextRecord;
use crate::engine_inner::LedgerDetail;

/// The entry about a context that was created: what it adds to starts, secrets by name only.
pub(super) fn created_entry(record: &ContextRecord) -> LedgerEntry {
    let mut detail = LedgerDetail::from([
        ("project".to_owned(), record.project.as_str().into()),
        (
            "directory".to_owned(),
            record.directory.to_string_lossy().into(),
        ),
    ]);
    if let Some(task) = &record.task {
        detail.insert("task".to_owned(), task.as_str().into());
    }
    if !record.options.secrets.is_empty() {
        detail.insert("secrets".to_owned(), record.options.secrets.clone().into());
    }
    LedgerEntry {
        at: record.created_at,
        execution: None,
        by: record.owner.clone(),
        event: Event::Context {
            context: record.id.clone(),
            state: ContextStage::Created,
            reason: None,
        },
        detail,
    }
}

/// The entry about a transition that `by` caused; none where nothing changed that is recorded. One
/// that was never created has no entries.
pub(super) fn transition_entry(
    record: &ContextRecord,
    before: &ContextState,
    after: &ContextState,
    by: &Owner,
) -> Option<LedgerEntry> {
    if discriminant(before) == discriminant(after) || *before == ContextState::Creating {
        return None;
    }
    let (state, reason) = match after {
        ContextState::Creating | ContextState::Idle { .. } | ContextState::Busy { .. } => {
            return None;
        }
        ContextState::Ending { end, .. } => (ContextStage::Ending, end.to_string()),
        ContextState::Failed { problem } => (ContextStage::Failed, problem.clone()),
        ContextState::Ended { end } => (ContextStage::Ended, end.to_string()),
    };
    Some(LedgerEntry {
        at: Timestamp::now(),
        execution: None,
        by: by.clone(),
        event: Event::Context {
            context: record.id.clone(),
            state,
            reason: Some(reason),
        },
        detail: LedgerDetail::new(),
    })
}
