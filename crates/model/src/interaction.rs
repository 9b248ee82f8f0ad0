//! The state of an interaction, which is one question and its answer.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Timestamp;
use crate::owner::Principal;

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

/// For people, for example `answered by ann` or `cancelled: the process has ended`.
impl fmt::Display for InteractionState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open => f.write_str("open"),
            Self::Answered { by, .. } => write!(f, "answered by {by}"),
            Self::Cancelled {
                reason: reason @ CancelReason::Requested { .. },
            } => write!(f, "{reason}"),
            Self::Cancelled { reason } => write!(f, "cancelled: {reason}"),
            Self::TimedOut { took_default: true } => {
                f.write_str("timed out, and its default was taken")
            }
            Self::TimedOut {
                took_default: false,
            } => f.write_str("timed out"),
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
    /// The command waits for this answer no more: it went on by itself, or asks something else.
    PromptGone,
    /// The engine that kept it was killed; the next one reports its end.
    EngineKilled,
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
            Self::PromptGone => f.write_str("the process does not wait for it any more"),
            Self::EngineKilled => {
                f.write_str("gone with the engine that kept it, which was killed")
            }
        }
    }
}
