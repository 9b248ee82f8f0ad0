//! The interaction state machine, without clock or I/O.
//!
//! An interaction is open, then one of answered, cancelled, timed out, finally. An answer to an
//! execution is delivered first: meanwhile the interaction is *claimed*. It still shows as open,
//! accepts no second answer, and anything else that would end it waits for the result of the
//! delivery.

mod restore;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use ostler_model::{ExecutionId, Owner, Principal, QuestionSource, Timestamp};
use tokio::time::Instant;

use super::changes::{InteractionChanges, InteractionTransition};
use super::question::Question;
use super::record::InteractionRecord;
pub use super::record::{AnswerDelivery, ClockSnapshot};
use super::state::{CancelReason, Interaction, InteractionOutcome, InteractionState};
use crate::admission::approval::{ApprovalStatus, ApprovalSubject, ApprovalUse, CONSENT_S};
use crate::error::{InteractionBound, InteractionError};
use crate::interaction_id::InteractionId;
use crate::prompt::PromptPlace;

/// The most open interactions of one session.
pub const MAX_OPEN: usize = 32;
/// The most open questions of one principal's clients: room is left for commands and approvals.
pub const MAX_OPEN_OF_CLIENTS: usize = 128;
/// The most open questions of commands of one session; they leave the others their room.
pub const MAX_OPEN_OF_COMMANDS: usize = 32;
/// The most open questions of one principal's commands.
pub const MAX_OPEN_OF_COMMANDS_OF_PRINCIPAL: usize = 256;
/// The most open questions of commands in total.
pub const MAX_OPEN_OF_COMMANDS_TOTAL: usize = 512;
/// The most open interactions of one principal; they leave the others their room.
pub const MAX_OPEN_OF_PRINCIPAL: usize = 512;
/// The most open interactions in total.
pub const MAX_OPEN_TOTAL: usize = 1_024;
/// Ended interactions kept for one session; the oldest is dropped first.
pub const MAX_ENDED: usize = 64;
/// Ended interactions kept for one principal.
pub const MAX_ENDED_OF_PRINCIPAL: usize = 512;
/// Ended interactions kept in total.
pub const MAX_ENDED_TOTAL: usize = 1_024;

/// Every interaction of one engine.
#[derive(Debug, Default)]
pub struct InteractionTable {
    last_id: u64,
    /// Counts the changes of records.
    last_change: u64,
    /// The last change that the file of interactions has.
    saved_change: u64,
    /// Whether something else has changed since that the file has.
    is_unsaved: bool,
    records: BTreeMap<InteractionId, InteractionRecord>,
    /// The last prompt of a living execution that a question was opened for: its number and place.
    pub(super) prompts: HashMap<ExecutionId, (u32, Option<PromptPlace>)>,
    /// In the order in which they happened, until they are taken.
    transitions: Vec<InteractionTransition>,
}

impl InteractionTable {
    /// Opens an interaction.
    ///
    /// # Errors
    /// An invalid question, and [`InteractionError::TooMany`].
    pub fn open(
        &mut self,
        now: ClockSnapshot,
        owner: Owner,
        question: Question,
    ) -> Result<Interaction, InteractionError> {
        question.check()?;
        self.check_room(&owner, question.source)?;
        self.last_id += 1;
        self.last_change += 1;
        let timeout = question.timeout;
        let interaction = Interaction {
            id: InteractionId(self.last_id),
            owner,
            question,
            created_at: now.at,
            expires_at: now.at.checked_add(timeout).unwrap_or(Timestamp::MAX),
            state: InteractionState::Open,
        };
        let record = InteractionRecord {
            interaction: interaction.clone(),
            deadline: now.instant + timeout,
            claim: None,
            outcome: None,
            consumed: false,
            consumer: None,
            changed: self.last_change,
        };
        self.records.insert(interaction.id, record);
        self.transitions.push(InteractionTransition {
            interaction: interaction.clone(),
            outcome: None,
        });
        Ok(interaction)
    }

    /// Whether another interaction may be opened.
    fn check_room(&self, owner: &Owner, source: QuestionSource) -> Result<(), InteractionError> {
        use InteractionBound::{Daemon, Principal, Session};
        let is_command = |it: &Interaction| it.question.source == QuestionSource::Command;
        let is_of_client = |it: &Interaction| it.question.source == QuestionSource::Api;
        let of_session = |it: &Interaction| same_session(&it.owner, owner);
        let of_principal = |it: &Interaction| it.owner.principal == owner.principal;
        let count = |is_counted: &dyn Fn(&Interaction) -> bool| {
            let open = self.open_records().map(|record| &record.interaction);
            open.filter(|it| is_counted(it)).count()
        };
        if source == QuestionSource::Command {
            let open = count(&|it| is_command(it) && of_session(it));
            check_limit(open, MAX_OPEN_OF_COMMANDS, Session)?;
            let open = count(&|it| is_command(it) && of_principal(it));
            check_limit(open, MAX_OPEN_OF_COMMANDS_OF_PRINCIPAL, Principal)?;
            check_limit(count(&is_command), MAX_OPEN_OF_COMMANDS_TOTAL, Daemon)?;
        } else {
            let open = count(&|it| !is_command(it) && of_session(it));
            check_limit(open, MAX_OPEN, Session)?;
        }
        if source == QuestionSource::Api {
            let open = count(&|it| is_of_client(it) && of_principal(it));
            check_limit(open, MAX_OPEN_OF_CLIENTS, Principal)?;
        }
        check_limit(count(&of_principal), MAX_OPEN_OF_PRINCIPAL, Principal)?;
        check_limit(count(&|_| true), MAX_OPEN_TOTAL, Daemon)
    }

    /// Opens the question for the `number`th prompt of an execution: once, however often it is found
    /// or painted. One for an earlier prompt is cancelled. None where nothing was opened.
    pub fn open_for_prompt(
        &mut self,
        now: ClockSnapshot,
        owner: Owner,
        question: Question,
        number: u32,
    ) -> Option<Interaction> {
        let execution = question.execution?;
        let place = question.prompt_place;
        if self.knows_prompt(execution, number, place) {
            return None;
        }
        let current = self
            .open_records()
            .find(|it| it.interaction.question.is_prompt_of(execution));
        if let Some(current) = current {
            if current.claim.is_some() {
                return None;
            }
            let id = current.interaction.id;
            if current.interaction.question.is_same_prompt(&question) {
                self.prompts.insert(execution, (number, place));
                if let Some(record) = self.records.get_mut(&id) {
                    record.interaction.question.prompt_place = place;
                }
                return None;
            }
            self.end_cancelled(id, CancelReason::PromptGone);
        }
        let opened = self.open(now, owner, question).ok()?;
        self.prompts.insert(execution, (number, place));
        Some(opened)
    }

    /// Whether a person approved this start within [`CONSENT_S`]; an approval is valid once.
    pub(crate) fn approval_status(
        &mut self,
        now: Timestamp,
        owner: &Owner,
        subject: &ApprovalSubject,
        approval_id: Option<InteractionId>,
        usage: ApprovalUse,
    ) -> ApprovalStatus {
        let Some(request) = subject.digest() else {
            return ApprovalStatus::None;
        };
        let theirs = |record: &&mut InteractionRecord| {
            same_session(&record.interaction.owner, owner)
                && record.interaction.owner.project == owner.project
                && record.covered().is_some_and(|it| it.is_request(&request))
        };
        for record in self.records.values_mut().rev().filter(theirs) {
            let id = record.interaction.id;
            let covered = record.covered();
            let changed = covered.and_then(|then| subject.files.changed_since(&then.files));
            let changed = changed.map(Path::to_owned);
            match &record.interaction.state {
                // It belongs to another request.
                InteractionState::Open if changed.is_some() => {}
                InteractionState::Open => return ApprovalStatus::Open(id),
                InteractionState::Answered { at, .. } if record.is_yes() => {
                    let is_valid = now.as_second().saturating_sub(at.as_second()) <= CONSENT_S;
                    if is_valid && !record.consumed {
                        record.consumed = usage == ApprovalUse::Consume;
                        self.is_unsaved |= record.consumed;
                        return match changed {
                            Some(path) => ApprovalStatus::Changed(path),
                            None => ApprovalStatus::Granted(id),
                        };
                    }
                }
                InteractionState::Answered { .. } | InteractionState::Cancelled { .. }
                    if approval_id == Some(id) =>
                {
                    return ApprovalStatus::Refused;
                }
                InteractionState::Answered { .. }
                | InteractionState::Cancelled { .. }
                | InteractionState::TimedOut { .. } => {}
            }
        }
        ApprovalStatus::None
    }

    /// Accepts a valid answer: at once, or as a delivery to make first.
    ///
    /// # Errors
    /// [`InteractionError::NotFound`], [`InteractionError::Closed`],
    /// [`InteractionError::BeingAnswered`].
    pub fn answer(
        &mut self,
        now: ClockSnapshot,
        id: InteractionId,
        by: Principal,
        value: String,
    ) -> Result<Option<AnswerDelivery>, InteractionError> {
        let record = self.unclaimed(id)?;
        if record.interaction.question.execution.is_some() {
            return Ok(record.claim(by, value, false));
        }
        let state = InteractionState::Answered { by, at: now.at };
        self.end(id, state, InteractionOutcome::Answered(value));
        Ok(None)
    }

    /// Reports the result of a delivery. Where it failed and the interaction has timed out
    /// meanwhile, returns the delivery of the default. Where it succeeded, cancels the question for
    /// the prompt of the same command.
    pub fn finish_delivery(
        &mut self,
        now: ClockSnapshot,
        id: InteractionId,
        is_delivered: bool,
    ) -> Option<AnswerDelivery> {
        let record = self.records.get_mut(&id)?;
        let claim = record.claim.take()?;
        if is_delivered {
            let execution = record.interaction.question.execution;
            let (state, outcome) = record.delivered_state(now, claim);
            self.end(id, state, outcome);
            // The prompt of the command was answered by it.
            let is_prompt = |it: &Interaction| {
                it.question.source == QuestionSource::Command && it.question.execution == execution
            };
            self.cancel_where(is_prompt, &CancelReason::AnsweredElsewhere);
            return None;
        }
        if let Some(reason) = claim.fallback {
            self.end_cancelled(id, reason);
            return None;
        }
        if claim.default {
            let took_default = false;
            self.end(
                id,
                InteractionState::TimedOut { took_default },
                InteractionOutcome::TimedOut,
            );
            return None;
        }
        (record.deadline <= now.instant)
            .then(|| self.time_out(id))
            .flatten()
    }

    /// Cancels an interaction; returns its state.
    ///
    /// # Errors
    /// As [`InteractionTable::answer`].
    pub fn cancel(
        &mut self,
        id: InteractionId,
        reason: CancelReason,
    ) -> Result<Interaction, InteractionError> {
        let mut interaction = self.unclaimed(id)?.interaction.clone();
        interaction.state = InteractionState::Cancelled {
            reason: reason.clone(),
        };
        self.end_cancelled(id, reason);
        Ok(interaction)
    }

    /// Cancels every open interaction that matches. A claimed one only if its delivery fails.
    pub fn cancel_where(&mut self, matches: impl Fn(&Interaction) -> bool, reason: &CancelReason) {
        let ids: Vec<InteractionId> = self
            .open_records()
            .map(|record| &record.interaction)
            .filter(|it| matches(it))
            .map(|it| it.id)
            .collect();
        for id in ids {
            let claim = self.records.get_mut(&id).and_then(|it| it.claim.as_mut());
            match claim {
                Some(claim) => claim.fallback = Some(reason.clone()),
                None => self.end_cancelled(id, reason.clone()),
            }
        }
    }

    /// Moves the interactions of an execution to its new owner.
    pub fn transfer_to(&mut self, execution: ExecutionId, owner: &Owner) {
        for record in self.records.values_mut() {
            if record.interaction.question.execution == Some(execution) {
                record.interaction.owner = owner.clone();
                if record.interaction.is_open() {
                    self.last_change += 1;
                    record.changed = self.last_change;
                }
            }
        }
    }

    /// Times out interactions; returns the deliveries of defaults to executions.
    pub fn expire(&mut self, now: ClockSnapshot) -> Vec<AnswerDelivery> {
        let due: Vec<InteractionId> = self
            .open_records()
            .filter(|it| it.claim.is_none() && it.deadline <= now.instant)
            .map(|it| it.interaction.id)
            .collect();
        due.into_iter().filter_map(|id| self.time_out(id)).collect()
    }

    fn time_out(&mut self, id: InteractionId) -> Option<AnswerDelivery> {
        let record = self.records.get_mut(&id)?;
        let by = record.interaction.owner.principal.clone();
        let question = &record.interaction.question;
        let outcome = match question.default.clone() {
            Some(default) if question.execution.is_some() => {
                return record.claim(by, default, true);
            }
            Some(default) => InteractionOutcome::Default(default),
            None => InteractionOutcome::TimedOut,
        };
        let took_default = matches!(outcome, InteractionOutcome::Default(_));
        self.end(id, InteractionState::TimedOut { took_default }, outcome);
        None
    }

    /// When [`InteractionTable::expire`] has something to do, if nothing else happens.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Instant> {
        let unclaimed = self.open_records().filter(|it| it.claim.is_none());
        unclaimed.map(|it| it.deadline).min()
    }

    /// One interaction.
    #[must_use]
    pub fn get(&self, id: InteractionId) -> Option<&Interaction> {
        self.records.get(&id).map(|record| &record.interaction)
    }

    /// The outcome for a waiter; none while it is open.
    #[must_use]
    pub fn outcome(&self, id: InteractionId) -> Option<&InteractionOutcome> {
        self.records.get(&id)?.outcome.as_ref()
    }

    /// Every interaction, newest first.
    pub fn iter(&self) -> impl Iterator<Item = &Interaction> {
        self.records.values().rev().map(|it| &it.interaction)
    }

    /// Whether an answer to it is being delivered.
    #[must_use]
    pub fn is_claimed(&self, id: InteractionId) -> bool {
        let record = self.records.get(&id);
        record.is_some_and(|record| record.claim.is_some())
    }

    /// The changes after `position` for a watcher who sees what is `visible` and knows the `open`
    /// ones. The position before all changes is 0.
    #[must_use]
    pub fn changes_since(
        &self,
        position: u64,
        open: &BTreeSet<InteractionId>,
        visible: impl Fn(&Interaction) -> bool,
    ) -> InteractionChanges {
        let changed = self.records.values().filter(|it| it.changed > position);
        let mut changed: Vec<&InteractionRecord> =
            changed.filter(|it| visible(&it.interaction)).collect();
        changed.sort_unstable_by_key(|record| record.changed);
        let is_gone = |id: &&InteractionId| !self.get(**id).is_some_and(&visible);
        InteractionChanges {
            position: self.last_change,
            changed: changed
                .into_iter()
                .map(|record| record.interaction.clone())
                .collect(),
            gone: open.iter().filter(is_gone).copied().collect(),
        }
    }

    /// Takes what was opened and has ended since the last call, in that order.
    pub fn take_transitions(&mut self) -> Vec<InteractionTransition> {
        std::mem::take(&mut self.transitions)
    }

    fn open_records(&self) -> impl Iterator<Item = &InteractionRecord> {
        self.records.values().filter(|it| it.interaction.is_open())
    }

    fn unclaimed(&mut self, id: InteractionId) -> Result<&mut InteractionRecord, InteractionError> {
        let record = self.records.get_mut(&id);
        let record = record.ok_or(InteractionError::NotFound)?;
        if !record.interaction.is_open() {
            let state = record.interaction.state.clone();
            return Err(InteractionError::Closed { id, state });
        }
        if record.claim.is_some() {
            return Err(InteractionError::BeingAnswered { id });
        }
        Ok(record)
    }

    fn end_cancelled(&mut self, id: InteractionId, reason: CancelReason) {
        let state = InteractionState::Cancelled {
            reason: reason.clone(),
        };
        self.end(id, state, InteractionOutcome::Cancelled(reason));
    }

    fn end(&mut self, id: InteractionId, state: InteractionState, outcome: InteractionOutcome) {
        let Some(record) = self.records.get_mut(&id) else {
            return;
        };
        debug_assert!(record.interaction.is_open(), "{id} ended twice");
        self.last_change += 1;
        record.changed = self.last_change;
        record.interaction.state = state;
        record.outcome = Some(outcome.clone());
        self.transitions.push(InteractionTransition {
            interaction: record.interaction.clone(),
            outcome: Some(outcome),
        });
        let owner = record.interaction.owner.clone();
        self.prune_ended(MAX_ENDED, |it| same_session(&it.owner, &owner));
        let principal = &owner.principal;
        self.prune_ended(MAX_ENDED_OF_PRINCIPAL, |it| {
            it.owner.principal == *principal
        });
        self.prune_ended(MAX_ENDED_TOTAL, |_| true);
    }

    /// Removes matching ones beyond the limit, beginning with the one that ended first.
    fn prune_ended(&mut self, limit: usize, matches: impl Fn(&Interaction) -> bool) {
        let ended = self.records.values();
        let ended = ended.filter(|it| !it.interaction.is_open() && matches(&it.interaction));
        let mut ended: Vec<(u64, InteractionId)> =
            ended.map(|it| (it.changed, it.interaction.id)).collect();
        ended.sort_unstable();
        for (_, id) in ended.iter().take(ended.len().saturating_sub(limit)) {
            self.records.remove(id);
        }
    }
}

fn check_limit(open: usize, limit: usize, bound: InteractionBound) -> Result<(), InteractionError> {
    if open < limit {
        return Ok(());
    }
    Err(InteractionError::TooMany { bound, limit })
}

/// Whether two owners share the per-session limits.
fn same_session(one: &Owner, other: &Owner) -> bool {
    one.principal == other.principal && one.session == other.session
}
