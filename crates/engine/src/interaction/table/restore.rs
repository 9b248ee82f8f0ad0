//! What the next engine is told of the table, and what this one takes over.

use std::cmp::Reverse;

use ostler_model::ExecutionId;

use super::super::record::{ClockSnapshot, EndedInteraction, InteractionRecord};
use super::super::state::{CancelReason, Interaction};
use super::InteractionTable;
use crate::interaction_id::InteractionId;

/// The highest number that is taken over: a damaged file must not use up the numbers.
const LAST_ID_MAX: u64 = u64::MAX / 2;

impl InteractionTable {
    /// The number of the last interaction, where something has changed since the last call.
    pub(in crate::interaction) fn take_unsaved(&mut self) -> Option<u64> {
        let saved = std::mem::replace(&mut self.saved_change, self.last_change);
        let is_unsaved = std::mem::take(&mut self.is_unsaved) || saved != self.last_change;
        is_unsaved.then_some(self.last_id)
    }

    /// The file could not be written: it is tried again with the next change.
    pub(in crate::interaction) fn mark_unsaved(&mut self) {
        self.is_unsaved = true;
    }

    /// This execution is the start that an approval was consumed for.
    pub(in crate::interaction) fn set_consumer(&mut self, id: InteractionId, by: ExecutionId) {
        if let Some(record) = self.records.get_mut(&id) {
            record.consumer = Some(by);
        }
    }

    /// The approval that was consumed for this execution.
    pub(in crate::interaction) fn approval_of(&self, by: ExecutionId) -> Option<InteractionId> {
        let mut records = self.records.values();
        let record = records.find(|record| record.consumer == Some(by))?;
        Some(record.interaction.id)
    }

    /// The start that an approval was consumed for is refused: another one may use it.
    pub(in crate::interaction) fn release_approval(&mut self, id: InteractionId) {
        if let Some(record) = self.records.get_mut(&id) {
            self.is_unsaved |= record.consumed;
            record.consumed = false;
            record.consumer = None;
        }
    }

    /// Every interaction with its outcome, the one that changed last first.
    pub(in crate::interaction) fn by_change(&self) -> Vec<&InteractionRecord> {
        let mut records: Vec<&InteractionRecord> = self.records.values().collect();
        records.sort_unstable_by_key(|it| Reverse((it.changed, it.interaction.id)));
        records
    }

    /// Takes over what had ended under an earlier engine, the one that ended first before the others.
    pub(in crate::interaction) fn restore_ended(
        &mut self,
        now: ClockSnapshot,
        ended: EndedInteraction,
    ) {
        self.last_change += 1;
        let id = ended.interaction.id;
        let record = InteractionRecord {
            interaction: ended.interaction,
            deadline: now.instant,
            claim: None,
            outcome: Some(ended.outcome),
            consumed: ended.consumed,
            consumer: None,
            changed: self.last_change,
        };
        self.records.insert(id, record);
    }

    /// Takes over what an engine that was killed left open, as ended. Ids continue after its last.
    pub(in crate::interaction) fn end_left(
        &mut self,
        now: ClockSnapshot,
        last_id: u64,
        open: impl Iterator<Item = Interaction>,
    ) {
        self.last_id = self.last_id.max(last_id.min(LAST_ID_MAX));
        for interaction in open {
            let id = interaction.id;
            let record = InteractionRecord {
                interaction,
                deadline: now.instant,
                claim: None,
                outcome: None,
                consumed: false,
                consumer: None,
                changed: self.last_change,
            };
            self.records.insert(id, record);
            self.end_cancelled(id, CancelReason::EngineKilled);
        }
    }
}
