//! One row of the interaction table.

use ostler_model::{ExecutionId, Principal, Timestamp};
use tokio::time::Instant;

use super::state::{CancelReason, Interaction, InteractionOutcome, InteractionState};
use super::validate::parse_yes_no;
use crate::admission::approval::CoveredStart;
use crate::interaction_id::InteractionId;

/// The same moment on the wall clock and the monotonic clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockSnapshot {
    /// The wall clock, for people.
    pub at: Timestamp,
    /// The monotonic clock, for deadlines.
    pub instant: Instant,
}

/// One line to write to a command's input; its result is reported with
/// [`InteractionTable::finish_delivery`](super::table::InteractionTable::finish_delivery).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnswerDelivery {
    /// The interaction.
    pub id: InteractionId,
    /// The execution whose input receives it.
    pub execution: ExecutionId,
    /// The principal that answered.
    pub by: Principal,
    /// The line, without its newline.
    pub line: String,
    /// Whether it is recorded nowhere.
    pub is_secret: bool,
}

/// An interaction, and what only the table knows of it.
#[derive(Debug)]
pub(super) struct InteractionRecord {
    pub(super) interaction: Interaction,
    pub(super) deadline: Instant,
    pub(super) claim: Option<AnswerClaim>,
    pub(super) outcome: Option<InteractionOutcome>,
    /// Whether its approval was consumed.
    pub(super) consumed: bool,
    /// The execution that its approval was consumed for, under this engine.
    pub(super) consumer: Option<ExecutionId>,
    /// The number of its last change: it was opened, passed to another owner while open, or ended.
    pub(super) changed: u64,
}

/// An answer that is being delivered to a command.
#[derive(Debug)]
pub(super) struct AnswerClaim {
    pub(super) by: Principal,
    pub(super) value: String,
    /// Whether it is the default, used for lack of an answer.
    pub(super) default: bool,
    /// What ends the interaction if the delivery fails.
    pub(super) fallback: Option<CancelReason>,
}

/// An interaction that has ended, as a later engine takes it over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct EndedInteraction {
    pub(super) interaction: Interaction,
    pub(super) outcome: InteractionOutcome,
    /// Whether its approval was consumed.
    pub(super) consumed: bool,
}

impl InteractionRecord {
    /// The start that a yes approves.
    pub(super) fn covered(&self) -> Option<&CoveredStart> {
        let approval = self.interaction.question.approval.as_ref()?;
        approval.covered.as_ref()
    }

    pub(super) fn is_yes(&self) -> bool {
        match &self.outcome {
            Some(InteractionOutcome::Answered(value)) => parse_yes_no(value) == Some(true),
            Some(
                InteractionOutcome::Default(_)
                | InteractionOutcome::Cancelled(_)
                | InteractionOutcome::TimedOut,
            )
            | None => false,
        }
    }

    pub(super) fn claim(
        &mut self,
        by: Principal,
        value: String,
        default: bool,
    ) -> Option<AnswerDelivery> {
        let execution = self.interaction.question.execution?;
        self.claim = Some(AnswerClaim {
            by: by.clone(),
            value: value.clone(),
            default,
            fallback: None,
        });
        Some(AnswerDelivery {
            id: self.interaction.id,
            execution,
            by,
            line: value,
            is_secret: self.interaction.question.secret,
        })
    }

    pub(super) fn delivered_state(
        &self,
        now: ClockSnapshot,
        claim: AnswerClaim,
    ) -> (InteractionState, InteractionOutcome) {
        if claim.default {
            let took_default = true;
            return (
                InteractionState::TimedOut { took_default },
                InteractionOutcome::Default(claim.value),
            );
        }
        let value = if self.interaction.question.secret {
            String::new()
        } else {
            claim.value
        };
        let (by, at) = (claim.by, now.at);
        (
            InteractionState::Answered { by, at },
            InteractionOutcome::Answered(value),
        )
    }
}
