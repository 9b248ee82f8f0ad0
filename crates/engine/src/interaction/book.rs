//! The registry's decisions, without clock, input or output.
//!
//! An interaction is open, then one of answered, cancelled, timed out, for good. An answer to
//! an execution goes in first: meanwhile the interaction is *claimed*. It still shows as open,
//! takes no second answer, and whatever else wants to end it waits for what becomes of the
//! bytes.

use std::collections::BTreeMap;

use ostler_model::{ExecutionId, Owner, Principal, Timestamp};
use tokio::time::Instant;

use super::approval::{AskedStart, CONSENT_S, Consent, Spend};
use super::error::InteractionError;
use super::question::Question;
use super::state::{Answer, CancelReason, Interaction, InteractionId, State};
use super::validate::meaning;

/// The most interactions open in one session at a time.
pub const MAX_OPEN: usize = 32;
/// The most interactions open at a time in all.
pub const MAX_OPEN_TOTAL: usize = 1_024;
/// Ended interactions that are remembered for one session; the oldest goes first.
pub const MAX_KEPT: usize = 64;
/// Ended interactions that are remembered in all.
pub const MAX_KEPT_TOTAL: usize = 1_024;

/// One moment on both clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Now {
    /// For people.
    pub at: Timestamp,
    /// For deadlines.
    pub instant: Instant,
}

/// One line for a command's input; what became of it is told by [`Book::delivered`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// Whose answer it is.
    pub id: InteractionId,
    /// Whose input.
    pub execution: ExecutionId,
    /// From whom.
    pub by: Principal,
    /// The line, without its newline.
    pub line: String,
}

/// Every interaction of one engine.
#[derive(Debug, Default)]
pub struct Book {
    last: u64,
    records: BTreeMap<InteractionId, Record>,
}

#[derive(Debug)]
struct Record {
    interaction: Interaction,
    deadline: Instant,
    claim: Option<Claim>,
    outcome: Option<Answer>,
    /// Whether the consent it gave was used.
    spent: bool,
}

/// An answer on its way into a command.
#[derive(Debug)]
struct Claim {
    by: Principal,
    value: String,
    /// Whether it is the default, taken for want of an answer.
    default: bool,
    /// What ends the interaction if the answer does not arrive.
    otherwise: Option<CancelReason>,
}

impl Book {
    /// Opens an interaction.
    ///
    /// # Errors
    /// What [`Question`] forbids, and [`InteractionError::TooMany`].
    pub fn open(
        &mut self,
        now: Now,
        owner: Owner,
        question: Question,
    ) -> Result<Interaction, InteractionError> {
        question.check()?;
        let theirs = |it: &&Record| same_session(&it.interaction.owner, &owner);
        room(self.open_records().filter(theirs).count(), MAX_OPEN)?;
        room(self.open_records().count(), MAX_OPEN_TOTAL)?;
        self.last += 1;
        let timeout = question.timeout;
        let interaction = Interaction {
            id: InteractionId(self.last),
            owner,
            question,
            created_at: now.at,
            expires_at: now.at.checked_add(timeout).unwrap_or(Timestamp::MAX),
            state: State::Open,
        };
        let record = Record {
            interaction: interaction.clone(),
            deadline: now.instant + timeout,
            claim: None,
            outcome: None,
            spent: false,
        };
        self.records.insert(interaction.id, record);
        Ok(interaction)
    }

    /// Whether a person agreed to this start within [`CONSENT_S`]; a yes holds once.
    pub(crate) fn consent(
        &mut self,
        now: Timestamp,
        owner: &Owner,
        asked: &AskedStart,
        (named, spend): (Option<InteractionId>, Spend),
    ) -> Consent {
        let theirs = |record: &&mut Record| {
            let question = &record.interaction.question;
            same_session(&record.interaction.owner, owner)
                && question
                    .approval
                    .as_ref()
                    .is_some_and(|it| it.asked.is_same_request(asked))
        };
        for record in self.records.values_mut().rev().filter(theirs) {
            let id = record.interaction.id;
            let then = record.interaction.question.approval.as_ref();
            let changed = then.and_then(|then| asked.files.changed_since(&then.asked.files));
            match &record.interaction.state {
                // It is about something else.
                State::Open if changed.is_some() => {}
                State::Open => return Consent::Open(id),
                State::Answered { at, .. } if record.says_yes() => {
                    let fresh = now.as_second().saturating_sub(at.as_second()) <= CONSENT_S;
                    if fresh && !record.spent {
                        record.spent = spend == Spend::Once;
                        return match changed {
                            Some(path) => Consent::Changed(path.to_owned()),
                            None => Consent::Granted,
                        };
                    }
                }
                State::Answered { .. } | State::Cancelled { .. } if named == Some(id) => {
                    return Consent::Refused;
                }
                State::Answered { .. } | State::Cancelled { .. } | State::TimedOut { .. } => {}
            }
        }
        Consent::None
    }

    /// Takes an answer that suits the question: at once, or as a delivery to make first.
    ///
    /// # Errors
    /// [`InteractionError::NotFound`], [`InteractionError::Closed`],
    /// [`InteractionError::BeingAnswered`].
    pub fn answer(
        &mut self,
        now: Now,
        id: InteractionId,
        by: Principal,
        value: String,
    ) -> Result<Option<Delivery>, InteractionError> {
        let record = self.unclaimed(id)?;
        if record.interaction.question.execution.is_some() {
            return Ok(record.claim(by, value, false));
        }
        let state = State::Answered { by, at: now.at };
        self.end(id, state, Answer::Given(value));
        Ok(None)
    }

    /// What became of a delivery. Where it failed and the time has run out meanwhile, the
    /// answer is the default's delivery.
    pub fn delivered(&mut self, now: Now, id: InteractionId, arrived: bool) -> Option<Delivery> {
        let record = self.records.get_mut(&id)?;
        let claim = record.claim.take()?;
        if arrived {
            let (state, outcome) = record.arrived(now, claim);
            self.end(id, state, outcome);
            return None;
        }
        if let Some(reason) = claim.otherwise {
            self.cancelled(id, reason);
            return None;
        }
        if claim.default {
            let took_default = false;
            self.end(id, State::TimedOut { took_default }, Answer::TimedOut);
            return None;
        }
        (record.deadline <= now.instant)
            .then(|| self.run_out(id))
            .flatten()
    }

    /// Gives one up; answers how it stands then.
    ///
    /// # Errors
    /// As [`Book::answer`].
    pub fn cancel(
        &mut self,
        id: InteractionId,
        reason: CancelReason,
    ) -> Result<Interaction, InteractionError> {
        let mut told = self.unclaimed(id)?.interaction.clone();
        told.state = State::Cancelled {
            reason: reason.clone(),
        };
        self.cancelled(id, reason);
        Ok(told)
    }

    /// Gives up every open one that is meant. A claimed one only once its answer has not
    /// arrived.
    pub fn cancel_where(&mut self, meant: impl Fn(&Interaction) -> bool, reason: &CancelReason) {
        let found: Vec<InteractionId> = self
            .open_records()
            .map(|record| &record.interaction)
            .filter(|it| meant(it))
            .map(|it| it.id)
            .collect();
        for id in found {
            let claim = self.records.get_mut(&id).and_then(|it| it.claim.as_mut());
            match claim {
                Some(claim) => claim.otherwise = Some(reason.clone()),
                None => self.cancelled(id, reason.clone()),
            }
        }
    }

    /// Passes the interactions of an execution on with it (D3).
    pub fn pass_to(&mut self, execution: ExecutionId, owner: &Owner) {
        for record in self.records.values_mut() {
            if record.interaction.question.execution == Some(execution) {
                record.interaction.owner = owner.clone();
            }
        }
    }

    /// Ends what has run out of time; defaults for executions are to be delivered.
    pub fn expire(&mut self, now: Now) -> Vec<Delivery> {
        let due: Vec<InteractionId> = self
            .open_records()
            .filter(|it| it.claim.is_none() && it.deadline <= now.instant)
            .map(|it| it.interaction.id)
            .collect();
        due.into_iter().filter_map(|id| self.run_out(id)).collect()
    }

    fn run_out(&mut self, id: InteractionId) -> Option<Delivery> {
        let record = self.records.get_mut(&id)?;
        let by = record.interaction.owner.principal.clone();
        let question = &record.interaction.question;
        let outcome = match question.default.clone() {
            Some(default) if question.execution.is_some() => {
                return record.claim(by, default, true);
            }
            Some(default) => Answer::Default(default),
            None => Answer::TimedOut,
        };
        let took_default = matches!(outcome, Answer::Default(_));
        self.end(id, State::TimedOut { took_default }, outcome);
        None
    }

    /// When [`Book::expire`] has something to do, if nothing else happens.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Instant> {
        let waiting = self.open_records().filter(|it| it.claim.is_none());
        waiting.map(|it| it.deadline).min()
    }

    /// One interaction.
    #[must_use]
    pub fn get(&self, id: InteractionId) -> Option<&Interaction> {
        self.records.get(&id).map(|record| &record.interaction)
    }

    /// What whoever waits for it is told; none while it is open.
    #[must_use]
    pub fn outcome(&self, id: InteractionId) -> Option<&Answer> {
        self.records.get(&id)?.outcome.as_ref()
    }

    /// Every interaction, newest first.
    pub fn iter(&self) -> impl Iterator<Item = &Interaction> {
        self.records.values().rev().map(|it| &it.interaction)
    }

    fn open_records(&self) -> impl Iterator<Item = &Record> {
        self.records.values().filter(|it| it.interaction.is_open())
    }

    fn unclaimed(&mut self, id: InteractionId) -> Result<&mut Record, InteractionError> {
        let record = self.records.get_mut(&id);
        let record = record.ok_or(InteractionError::NotFound)?;
        if !record.interaction.is_open() {
            let state = record.interaction.state.as_str();
            return Err(InteractionError::Closed { id, state });
        }
        if record.claim.is_some() {
            return Err(InteractionError::BeingAnswered { id });
        }
        Ok(record)
    }

    fn cancelled(&mut self, id: InteractionId, reason: CancelReason) {
        let state = State::Cancelled {
            reason: reason.clone(),
        };
        self.end(id, state, Answer::Cancelled(reason));
    }

    fn end(&mut self, id: InteractionId, state: State, outcome: Answer) {
        let Some(record) = self.records.get_mut(&id) else {
            return;
        };
        debug_assert!(record.interaction.is_open(), "{id} ended twice");
        record.interaction.state = state;
        record.outcome = Some(outcome);
        let owner = record.interaction.owner.clone();
        self.forget_beyond(MAX_KEPT, |it| same_session(&it.owner, &owner));
        self.forget_beyond(MAX_KEPT_TOTAL, |_| true);
    }

    fn forget_beyond(&mut self, limit: usize, meant: impl Fn(&Interaction) -> bool) {
        let ended = self.records.values().map(|it| &it.interaction);
        let ended = ended
            .filter(|it| !it.is_open() && meant(it))
            .map(|it| it.id);
        let ended: Vec<InteractionId> = ended.collect();
        for id in ended.iter().take(ended.len().saturating_sub(limit)) {
            self.records.remove(id);
        }
    }
}

impl Record {
    fn says_yes(&self) -> bool {
        match &self.outcome {
            Some(Answer::Given(value)) => meaning(value) == Some(true),
            Some(Answer::Default(_) | Answer::Cancelled(_) | Answer::TimedOut) | None => false,
        }
    }

    fn claim(&mut self, by: Principal, value: String, default: bool) -> Option<Delivery> {
        let execution = self.interaction.question.execution?;
        self.claim = Some(Claim {
            by: by.clone(),
            value: value.clone(),
            default,
            otherwise: None,
        });
        Some(Delivery {
            id: self.interaction.id,
            execution,
            by,
            line: value,
        })
    }

    fn arrived(&self, now: Now, claim: Claim) -> (State, Answer) {
        if claim.default {
            let took_default = true;
            return (
                State::TimedOut { took_default },
                Answer::Default(claim.value),
            );
        }
        let value = if self.interaction.question.secret {
            String::new()
        } else {
            claim.value
        };
        let (by, at) = (claim.by, now.at);
        (State::Answered { by, at }, Answer::Given(value))
    }
}

fn room(open: usize, limit: usize) -> Result<(), InteractionError> {
    if open < limit {
        return Ok(());
    }
    Err(InteractionError::TooMany { open, limit })
}

/// Whether two owners share what is counted per session.
fn same_session(one: &Owner, other: &Owner) -> bool {
    one.principal == other.principal && one.session == other.session
}
