//! Changes of interactions, as the ledger and watchers receive them.

use ostler_journal::LedgerEntry;
use ostler_model::{Event, InteractionState, Timestamp};
use serde_json::Value;

use super::question::Question;
use super::state::{Interaction, InteractionOutcome};
use crate::engine_inner::LedgerDetail;
use crate::interaction_id::InteractionId;

/// The most characters of a message in the ledger.
const MESSAGE_CHARS: usize = 500;

/// An interaction that was opened or has ended, for the ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InteractionTransition {
    /// The interaction in its new state.
    pub interaction: Interaction,
    /// Its outcome; none for one that was opened.
    pub outcome: Option<InteractionOutcome>,
}

/// What changed for one watcher of interactions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InteractionChanges {
    /// The position to continue from.
    pub position: u64,
    /// The interactions that were opened or ended, or passed to another owner, in that order.
    pub changed: Vec<Interaction>,
    /// Those of the watcher's open ones that it does not see any more: they passed to another
    /// owner, or ended so long ago that how they ended is not kept.
    pub gone: Vec<InteractionId>,
}

impl InteractionTransition {
    /// The entry for the ledger: the question where it was opened, the answer where it was
    /// answered. What is typed into an execution is not kept, and a secret never.
    pub(super) fn ledger_entry(self, at: Timestamp) -> LedgerEntry {
        let Interaction {
            id,
            owner,
            question,
            state,
            ..
        } = self.interaction;
        let detail = match state {
            InteractionState::Open => question_detail(&question),
            InteractionState::Answered { .. }
            | InteractionState::Cancelled { .. }
            | InteractionState::TimedOut { .. } => answer_detail(&question, self.outcome),
        };
        LedgerEntry {
            at,
            execution: question.execution,
            by: owner,
            event: Event::Interaction {
                interaction: id.to_string(),
                state,
            },
            detail,
        }
    }
}

fn question_detail(question: &Question) -> LedgerDetail {
    let message: String = question.message.chars().take(MESSAGE_CHARS).collect();
    let mut detail = LedgerDetail::from([
        ("kind".to_owned(), question.kind.as_str().into()),
        ("message".to_owned(), message.into()),
        ("secret".to_owned(), question.secret.into()),
    ]);
    if let Some(approval) = &question.approval {
        detail.insert("rule".to_owned(), approval.rule.clone().into());
    }
    detail
}

fn answer_detail(question: &Question, outcome: Option<InteractionOutcome>) -> LedgerDetail {
    let is_kept = !question.secret && question.execution.is_none();
    let answer = match outcome {
        Some(InteractionOutcome::Answered(value) | InteractionOutcome::Default(value))
            if is_kept =>
        {
            Some(Value::from(value))
        }
        _ => None,
    };
    answer
        .map(|answer| ("answer".to_owned(), answer))
        .into_iter()
        .collect()
}
