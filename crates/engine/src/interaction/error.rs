//! Errors of questions and answers.

use ostler_model::ExecutionId;
use thiserror::Error;

use super::state::InteractionId;
use crate::prompt::QuestionKind;

/// A question that cannot be asked, or an answer that cannot be taken.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum InteractionError {
    /// Unknown, or somebody else's; the two are reported alike.
    #[error("Interaction not found or access denied")]
    NotFound,
    /// It was answered, cancelled or ran out of time before.
    #[error("interaction {id} is no longer open: {state}")]
    Closed {
        /// Which.
        id: InteractionId,
        /// How it stands: `answered`, `end_cancelled` or `timed_out`.
        state: &'static str,
    },
    /// Another answer is just going in.
    #[error("interaction {id} is being answered right now")]
    BeingAnswered {
        /// Which.
        id: InteractionId,
    },
    /// Consent to a start is a person's to give, never the session's that asks.
    #[error("interaction {id} is a person's to answer")]
    OnlyPerson {
        /// Which.
        id: InteractionId,
    },
    /// As many are open as may be.
    #[error("{open} of {limit} interactions are open already")]
    TooMany {
        /// How many are open.
        open: usize,
        /// How many may be.
        limit: usize,
    },
    /// The question cannot be asked.
    #[error("the question's {what}")]
    Question {
        /// What is wrong, for example `message is empty`.
        what: String,
    },
    /// The answer is none to this question.
    #[error("'{value}' is no answer to a {}: {allowed}", kind.as_str())]
    Value {
        /// The answer; of a secret, nothing.
        value: String,
        /// What was asked for.
        kind: QuestionKind,
        /// What is allowed.
        allowed: String,
    },
    /// The command has ended: nothing waits for an answer.
    #[error("process {} has ended and takes no answer", id.short())]
    Ended {
        /// Which.
        id: ExecutionId,
    },
    /// The command took less than the whole answer; the interaction is still open.
    #[error("the process took {taken} of {given} bytes of the answer")]
    PartiallyWritten {
        /// How many bytes went in.
        taken: u64,
        /// How many the answer has, with its newline.
        given: u64,
    },
    /// The answer could not be handed over; the interaction is still open.
    #[error("the answer did not arrive: {message}")]
    NotDelivered {
        /// Why.
        message: String,
    },
}
