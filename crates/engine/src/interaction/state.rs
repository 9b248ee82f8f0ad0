//! An interaction and its outcome.

pub use ostler_model::{CancelReason, InteractionState};
use ostler_model::{Owner, Timestamp};
use serde::Serialize;

use super::question::Question;
use crate::interaction_id::InteractionId;

/// An interaction: one question and its state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Interaction {
    /// Its id, unique until the engine ends.
    pub id: InteractionId,
    /// Who may see and answer it.
    pub owner: Owner,
    /// The question.
    pub question: Question,
    /// When it was opened.
    pub created_at: Timestamp,
    /// When it times out.
    pub expires_at: Timestamp,
    /// Its state.
    pub state: InteractionState,
}

impl Interaction {
    /// Whether it still waits for an answer.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        matches!(self.state, InteractionState::Open)
    }
}

/// The outcome for a waiter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InteractionOutcome {
    /// The answer, normalised (`yes` may have become `y`); empty for a secret that was written to
    /// an execution, which is not kept.
    Answered(String),
    /// No answer arrived in time: the default was used.
    Default(String),
    /// It was cancelled.
    Cancelled(CancelReason),
    /// No answer arrived in time, and there is no default.
    TimedOut,
}
