//! The state and outcome of an interaction.

use std::fmt;

use ostler_model::{Owner, Principal, Timestamp};
use serde::{Deserialize, Serialize};

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

/// The state of an interaction. Every state but open is final.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum InteractionState {
    /// It waits for an answer.
    Open,
    /// It was answered; the answer itself is not kept here.
    Answered {
        /// The principal that answered.
        by: Principal,
        /// When it was answered.
        at: Timestamp,
    },
    /// It was cancelled.
    Cancelled {
        /// Why it was cancelled.
        reason: CancelReason,
    },
    /// No answer arrived in time.
    TimedOut {
        /// Whether the default was used.
        took_default: bool,
    },
}

impl InteractionState {
    /// Its name on every API surface: `open`, `answered`, `cancelled` or `timed_out`.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Answered { .. } => "answered",
            Self::Cancelled { .. } => "cancelled",
            Self::TimedOut { .. } => "timed_out",
        }
    }
}

/// Why an interaction was cancelled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum CancelReason {
    /// A caller requested it.
    Requested {
        /// Who requested it.
        by: Principal,
        /// The reason given, if any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// The command received a line of input by another way.
    AnsweredElsewhere,
    /// The waiting command has ended.
    ExecutionEnded,
    /// The session it belongs to has ended.
    SessionEnded,
    /// The engine shuts down.
    Shutdown,
}

impl fmt::Display for CancelReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Requested {
                by,
                reason: Some(reason),
            } => write!(f, "cancelled by {by}: {reason}"),
            Self::Requested { by, reason: None } => write!(f, "cancelled by {by}"),
            Self::AnsweredElsewhere => f.write_str("the process got its input by another way"),
            Self::ExecutionEnded => f.write_str("the process has ended"),
            Self::SessionEnded => f.write_str("its session ended"),
            Self::Shutdown => f.write_str("the engine is shutting down"),
        }
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
