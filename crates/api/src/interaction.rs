//! Questions to people, and answers.

use ostler_model::{QuestionKind, Timestamp};
use serde::{Deserialize, Serialize};

/// One question (`GET /api/v1/interactions`).
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
    /// `open`, `answered`, `cancelled` or `timed_out`.
    pub status: String,
    /// Whether `yes` approves a command that the policy holds back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<ApprovalBody>,
    /// The execution whose input takes the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution: Option<String>,
    /// The session it was opened in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// When it was opened.
    pub created_at: Timestamp,
    /// When it expires.
    pub expires_at: Timestamp,
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
