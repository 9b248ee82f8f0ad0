//! The state and outcome of an interaction.

use std::fmt;

use ostler_model::{Owner, Principal, Timestamp};
use serde::{Deserialize, Serialize};

use super::question::Question;

/// The name of one interaction: `i` and its number since the engine was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct InteractionId(pub(super) u64);

impl InteractionId {
    /// What a caller wrote, if it can be one.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.trim().strip_prefix(['i', 'I'])?;
        let is_canonical = !digits.starts_with(['0', '+']);
        digits.parse().ok().filter(|_| is_canonical).map(Self)
    }
}

impl fmt::Display for InteractionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "i{}", self.0)
    }
}

impl Serialize for InteractionId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// One question and what became of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Interaction {
    /// Its id, unique until the engine ends.
    pub id: InteractionId,
    /// Who may see and answer it.
    pub owner: Owner,
    /// What was asked.
    pub question: Question,
    /// When.
    pub created_at: Timestamp,
    /// When the default is taken, or it is given up.
    pub expires_at: Timestamp,
    /// How it stands.
    pub state: InteractionState,
}

impl Interaction {
    /// Whether an answer is still waited for.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        matches!(self.state, InteractionState::Open)
    }
}

/// How an interaction stands. Everything but open is final.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum InteractionState {
    /// An answer is waited for.
    Open,
    /// Somebody answered; the answer itself is not kept here.
    Answered {
        /// Who.
        by: Principal,
        /// When.
        at: Timestamp,
    },
    /// Nobody will answer any more.
    Cancelled {
        /// Why.
        reason: CancelReason,
    },
    /// Nobody answered in time.
    TimedOut {
        /// Whether the default was taken.
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
    /// A caller asked.
    Requested {
        /// Who.
        by: Principal,
        /// What they gave as the reason.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// The command got a line of input by another way.
    AnsweredElsewhere,
    /// The command that waited has ended.
    ExecutionEnded,
    /// The session it was asked in ended.
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

/// What whoever waits for an answer is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InteractionOutcome {
    /// The answer, as it was taken (`yes` may have become `y`); empty for a secret that went
    /// into an execution, which is not kept.
    Answered(String),
    /// Nobody answered in time: the default was taken.
    Default(String),
    /// Nobody will answer.
    Cancelled(CancelReason),
    /// Nobody answered in time, and there is no default.
    TimedOut,
}
