//! Errors of questions and answers.

use ostler_model::{ExecutionId, InteractionState};
use thiserror::Error;

use crate::interaction_id::InteractionId;
use crate::prompt::QuestionKind;
use crate::settings::ApprovalPath;

/// What a limit of open interactions counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InteractionBound {
    /// Those of one session.
    Session,
    /// Those of one principal.
    Principal,
    /// All of the daemon.
    Daemon,
}

impl InteractionBound {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Session => "of this session",
            Self::Principal => "of your sessions",
            Self::Daemon => "of all users",
        }
    }

    const fn hint(self) -> &'static str {
        match self {
            Self::Session | Self::Principal => "answer or cancel one of them, and try again",
            Self::Daemon => "try again when others have answered theirs",
        }
    }
}

/// How a person answers an approval.
fn approval_hint(interaction: &str, path: ApprovalPath) -> String {
    match path {
        ApprovalPath::Daemon => format!(
            "a person answers: with 'ostler approve {interaction}' as the user who asked, on the \
             page, or with a token of the same principal that has sessions:all"
        ),
        ApprovalPath::Client => "without a daemon a person can answer only where this client \
                                 asks; where it cannot ask, run it without --no-daemon"
            .to_owned(),
    }
}

/// What to do about a start that waits for an approval.
pub(crate) fn retry_hint(interaction: &str, path: ApprovalPath) -> String {
    let hint = approval_hint(interaction, path);
    match path {
        ApprovalPath::Daemon => format!("{hint}; then ask again"),
        ApprovalPath::Client => hint,
    }
}

/// An invalid question, or an answer that was not accepted.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum InteractionError {
    /// Unknown, or of another owner; the error is the same.
    #[error("Interaction not found or access denied")]
    NotFound,
    /// It was answered, cancelled or timed out before.
    #[error("interaction {id} is no longer open: {state}")]
    Closed {
        /// The interaction.
        id: InteractionId,
        /// How it ended.
        state: InteractionState,
    },
    /// Another answer is being delivered.
    #[error("interaction {id} is being answered right now")]
    BeingAnswered {
        /// The interaction.
        id: InteractionId,
    },
    /// Only a person may approve a start, never the session that requested it.
    #[error("interaction {id} is a person's to answer")]
    OnlyPerson {
        /// The interaction.
        id: InteractionId,
        /// Where the person answers.
        path: ApprovalPath,
    },
    /// The limit of open interactions is reached.
    #[error("{limit} questions {} are open, the most there may be", bound.as_str())]
    TooMany {
        /// What is limited.
        bound: InteractionBound,
        /// The limit.
        limit: usize,
    },
    /// The question is invalid.
    #[error("the question's {what}")]
    Question {
        /// The cause, for example `message is empty`.
        what: String,
    },
    /// The answer is not valid for this question.
    #[error("'{value}' is no answer to a {}: {allowed}", kind.as_str())]
    Value {
        /// The answer; empty for a secret.
        value: String,
        /// The requested kind of answer.
        kind: QuestionKind,
        /// The allowed values, as text.
        allowed: String,
    },
    /// The command has ended: nothing waits for an answer.
    #[error("process {} has ended and takes no answer", id.short())]
    Ended {
        /// The execution.
        id: ExecutionId,
    },
    /// The command took less than the whole answer; the interaction is still open.
    #[error("the process took {taken} of {given} bytes of the answer")]
    PartiallyWritten {
        /// The number of bytes that were written.
        taken: u64,
        /// The length of the answer in bytes, with its newline.
        given: u64,
    },
    /// The answer could not be delivered; the interaction is still open.
    #[error("the answer did not arrive: {message}")]
    NotDelivered {
        /// The cause, for people.
        message: String,
    },
}

impl InteractionError {
    /// Whether the same request may succeed later.
    pub(super) const fn is_retryable(&self) -> bool {
        match self {
            Self::BeingAnswered { .. }
            | Self::TooMany { .. }
            | Self::PartiallyWritten { .. }
            | Self::NotDelivered { .. } => true,
            Self::NotFound
            | Self::Question { .. }
            | Self::Value { .. }
            | Self::Closed { .. }
            | Self::OnlyPerson { .. }
            | Self::Ended { .. } => false,
        }
    }

    /// What to do about it, where known.
    pub(super) fn hint(&self) -> Option<String> {
        match self {
            Self::NotFound | Self::Closed { .. } => {
                Some("list the interactions to see which are open".to_owned())
            }
            Self::BeingAnswered { .. } => Some("look at it again in a moment".to_owned()),
            Self::OnlyPerson { id, path } => Some(approval_hint(&id.to_string(), *path)),
            Self::TooMany { bound, .. } => Some(bound.hint().to_owned()),
            Self::PartiallyWritten { .. } => {
                Some("look at the output: the command may not read its input".to_owned())
            }
            Self::Question { .. }
            | Self::Value { .. }
            | Self::Ended { .. }
            | Self::NotDelivered { .. } => None,
        }
    }
}
