//! [`HistoryUpdater`]: folds the ledger into the history, and mends the history.

use std::sync::Arc;
use std::time::Duration;

use ostler_journal::{LedgerCursor, LedgerReader};
use ostler_model::Timestamp;

use crate::database::FoldPosition;
use crate::error::StoreError;
use crate::store::HistoryStore;

/// The most entries folded in one transaction.
const BATCH_ENTRIES: usize = 300;
/// The time between two removals of old rows.
const EXPIRY_INTERVAL: Duration = Duration::from_secs(60 * 60);

/// The result of one step.
#[derive(Debug)]
pub enum UpdateOutcome {
    /// Entries up to this position are folded, and there may be more of them, or of old rows.
    Advanced(LedgerCursor),
    /// Everything is folded, up to this position.
    UpToDate(LedgerCursor),
    /// The history belonged to another ledger, or was damaged: it is made anew from now on.
    Restarted(String),
    /// Nothing was folded; a later step tries again.
    Failed(StoreError),
}

/// Brings the history up to date, one bounded step at a time. Blocks; there is one for each store.
#[derive(Debug)]
pub struct HistoryUpdater {
    ledger: LedgerReader,
    store: Arc<HistoryStore>,
    /// How long rows are kept.
    retention: Duration,
    last_expiry: Option<Timestamp>,
    /// Whether the last folded entry was found in the ledger.
    is_recognized: bool,
}

impl HistoryUpdater {
    /// Folds `ledger` into `store`.
    #[must_use]
    pub const fn new(ledger: LedgerReader, store: Arc<HistoryStore>, retention: Duration) -> Self {
        Self {
            ledger,
            store,
            retention,
            last_expiry: None,
            is_recognized: false,
        }
    }

    /// One step; `end` is the number of entries of the ledger.
    pub fn step(&mut self, end: u64, now: Timestamp) -> UpdateOutcome {
        match self.try_step(end, now) {
            Ok(outcome) => outcome,
            // The statements of the fold never depend on what they store: where one is refused, the
            // tables are not those that were made.
            Err(StoreError::Damaged(reason) | StoreError::Statement(reason)) => {
                match self.store.reset() {
                    Ok(()) => UpdateOutcome::Restarted(reason),
                    Err(error) => UpdateOutcome::Failed(error),
                }
            }
            Err(error) => UpdateOutcome::Failed(error),
        }
    }

    fn try_step(&mut self, end: u64, now: Timestamp) -> Result<UpdateOutcome, StoreError> {
        let folded = self.store.fold_position()?;
        if !self.is_recognized {
            if folded.next.0 > end || !self.is_in_ledger(&folded)? {
                self.store.reset()?;
                let reason = "it belonged to another ledger".to_owned();
                return Ok(UpdateOutcome::Restarted(reason));
            }
            self.is_recognized = true;
        }
        let records = self.ledger.read(folded.next, BATCH_ENTRIES)?.records;
        if let Some(last) = records.last() {
            return match self.store.apply(folded.next, &records) {
                Ok(()) => Ok(UpdateOutcome::Advanced(LedgerCursor(last.seq + 1))),
                // The next step reads the new position.
                Err(StoreError::Moved) => Ok(UpdateOutcome::Advanced(LedgerCursor(0))),
                Err(error) => Err(error),
            };
        }
        if self.expire(now)? {
            return Ok(UpdateOutcome::Advanced(folded.next));
        }
        Ok(UpdateOutcome::UpToDate(folded.next))
    }

    /// Whether the last folded entry is one of this ledger; entries that have expired are believed.
    fn is_in_ledger(&self, folded: &FoldPosition) -> Result<bool, StoreError> {
        let Some(last) = folded.next.0.checked_sub(1) else {
            return Ok(true);
        };
        let records = self.ledger.read(LedgerCursor(last), 1)?.records;
        let record = records.first().filter(|record| record.seq == last);
        Ok(record.is_none_or(|record| record.hash == folded.hash))
    }

    /// Removes some of the old rows, where that is due; returns whether there may be more of them.
    fn expire(&mut self, now: Timestamp) -> Result<bool, StoreError> {
        let is_due = self.last_expiry.is_none_or(|last| {
            let age = now.duration_since(last);
            age.is_negative() || age.unsigned_abs() >= EXPIRY_INTERVAL
        });
        let Ok(before) = now.checked_sub(self.retention) else {
            return Ok(false);
        };
        if !is_due {
            return Ok(false);
        }
        let has_more = self.store.expire(before)?;
        if !has_more {
            self.last_expiry = Some(now);
        }
        Ok(has_more)
    }
}
