//! Questions to people, and answers.

use ostler_model::{ByteString, PromptEvidence, QuestionKind, QuestionSource, Timestamp};
use serde::{Deserialize, Serialize};

use super::problem::CodeName;

/// One question (`GET /api/v1/interactions`, `GET /api/v1/interactions/{id}`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InteractionBody {
    /// Its id, for example `i3`.
    pub id: String,
    /// The kind of answer required.
    pub kind: QuestionKind,
    /// The text of the question.
    pub message: String,
    /// The options.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
    /// The answer for an empty one, and on timeout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    /// Whether the answer must not be displayed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub secret: bool,
    /// Who asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<QuestionSource>,
    /// `open`, `answered`, `cancelled` or `timed_out`.
    pub status: String,
    /// Whether `yes` approves a command that the policy holds back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<ApprovalBody>,
    /// The execution whose input takes the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution: Option<String>,
    /// The directory that it is about: that of the command, or of the start to approve; else where
    /// a file is selected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<ByteString>,
    /// What shows that the command waits for an answer; absent for every other question.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<PromptEvidence>,
    /// Who alone may type into the execution now, for example `ostler attach on pts/3`: answers of
    /// others are refused meanwhile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<String>,
    /// The principal it was opened for.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub principal: String,
    /// The session it was opened in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// When it was opened.
    pub created_at: Timestamp,
    /// When it expires.
    pub expires_at: Timestamp,
    /// The milliseconds until then, while it is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remaining_ms: Option<u64>,
    /// How it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<InteractionEndBody>,
}

/// How a question ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InteractionEndBody {
    /// For people, for example `answered by ann` or `cancelled: the process has ended`.
    pub text: String,
    /// The principal that answered or cancelled it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// When it was answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
    /// Whether it timed out and its default was used.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub took_default: bool,
    /// The answer, or the default that was used; only for one question, and never a secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
}

/// The default timeout of a question, in milliseconds.
pub const QUESTION_TIMEOUT_MS: u64 = 300_000;

/// A question to open (`POST /api/v1/interactions`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QuestionBody {
    /// The kind of answer required.
    pub kind: QuestionKind,
    /// The text of the question.
    pub message: String,
    /// The options: required for a choice; those of a file selection are all that may be chosen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
    /// The answer for an empty one, and on timeout; without one, a timeout leaves it unanswered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    /// How long it is open, in milliseconds.
    #[serde(default = "question_timeout")]
    pub timeout_ms: u64,
    /// The execution whose input takes the answer; absent for a question of the client itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution: Option<String>,
    /// Whether the answer must not be displayed; only for an execution.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub secret: bool,
    /// The absolute path of the directory in which a file is selected; absent for an execution,
    /// whose workspace it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<ByteString>,
    /// How long to wait for the answer, in milliseconds.
    #[serde(default)]
    pub wait_ms: u64,
}

const fn question_timeout() -> u64 {
    QUESTION_TIMEOUT_MS
}

/// What an approval permits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalBody {
    /// The rule that requires approval.
    pub rule: String,
    /// The rule's justification.
    pub reason: String,
    /// The command line.
    pub command: String,
}

/// Every question the caller sees, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InteractionsBody {
    /// The questions of this page.
    pub interactions: Vec<InteractionBody>,
    /// How many there are in all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<usize>,
    /// The `cursor` of the next window; absent at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// An answer (`POST /api/v1/interactions/{id}/answer`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AnswerBody {
    /// The answer; for an approval `yes` or `no`.
    pub value: String,
}

/// A cancellation (`POST /api/v1/interactions/{id}/cancel`).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CancelBody {
    /// Why, for those who wait for the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A message from the server (WebSocket `GET /api/v1/interactions/events`): a text frame with one
/// JSON object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum InteractionServerMessage {
    /// A question is open.
    Opened {
        /// The question.
        interaction: Box<InteractionBody>,
    },
    /// All questions that were open when the client connected were sent.
    UpToDate,
    /// A question was answered or cancelled, or timed out.
    Ended {
        /// The question.
        interaction: Box<InteractionBody>,
    },
    /// An open question is the client's no more, or ended too long ago to tell how.
    Gone {
        /// The question's id.
        id: String,
    },
    /// A request of the client was not carried out.
    Refused {
        /// The question's id; absent where the message was not understood.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        /// The stable code.
        code: CodeName,
        /// The problem, for people.
        message: String,
    },
}

/// A message from the client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum InteractionClientMessage {
    /// Answers a question.
    Answer {
        /// The question's id.
        id: String,
        /// The answer.
        value: String,
    },
    /// Cancels a question.
    Cancel {
        /// The question's id.
        id: String,
        /// Why, for those who wait for the answer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
}
