//! [`Question`]: what an interaction asks, and its validation limits.

use std::time::Duration;

use ostler_model::ExecutionId;
use serde::Serialize;

use super::error::InteractionError;
use crate::admission::approval::Approval;
use crate::info::Prompt;
use crate::prompt::{OPTIONS, QuestionKind};

/// How long an answer is waited for unless the question says otherwise, in milliseconds.
pub const INTERACTION_TIMEOUT_MS: u64 = 300_000;
/// The longest time an answer is waited for, in milliseconds.
pub const LONGEST_TIMEOUT_MS: u64 = 24 * 3_600_000;
/// The longest message.
pub const MESSAGE_BYTES: usize = 4_096;
/// The longest message that asks consent to a start: it shows the whole of it.
pub(crate) const APPROVAL_BYTES: usize = 64 * 1024;
/// The longest option.
pub const OPTION_BYTES: usize = 1_024;
/// The longest answer: with its newline one line of a terminal in its ordinary mode.
pub const ANSWER_BYTES: usize = 4_095;

/// One question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Question {
    /// What kind of answer is wanted.
    pub kind: QuestionKind,
    /// What to show, at most [`MESSAGE_BYTES`].
    pub message: String,
    /// What to choose from; may be empty unless a choice is asked for. An option such as
    /// `2) the blue one` of a question about an execution may also be chosen by its number or
    /// by the text behind it: the number is what goes in.
    pub options: Vec<String>,
    /// What is taken when the time runs out, or for an empty answer.
    pub default: Option<String>,
    /// How long an answer is waited for.
    pub timeout: Duration,
    /// The execution whose input takes the answer.
    pub execution: Option<ExecutionId>,
    /// Whether the answer must not be shown, kept or asked for in a form.
    pub secret: bool,
    /// What a yes lets run; then only a person may answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval: Option<Box<Approval>>,
}

impl Question {
    /// A question without options or default, for [`INTERACTION_TIMEOUT_MS`].
    #[must_use]
    pub fn new(kind: QuestionKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            options: Vec::new(),
            default: None,
            timeout: Duration::from_millis(INTERACTION_TIMEOUT_MS),
            execution: None,
            secret: false,
            approval: None,
        }
    }

    /// The question a command waits with ([`WaitFor::Prompt`](crate::WaitFor::Prompt)), for
    /// [`INTERACTION_TIMEOUT_MS`].
    #[must_use]
    pub fn from_prompt(prompt: Prompt, execution: ExecutionId) -> Self {
        Self {
            options: prompt.options,
            default: prompt.default,
            execution: Some(execution),
            secret: prompt.secret,
            ..Self::new(prompt.kind, prompt.text)
        }
    }

    /// Whether it can be asked.
    pub(super) fn check(&self) -> Result<(), InteractionError> {
        let invalid = |what: String| Err(InteractionError::Question { what });
        if self.message.trim().is_empty() && self.execution.is_none() {
            return invalid("message is empty".to_owned());
        }
        let longest = match self.approval {
            Some(_) => APPROVAL_BYTES,
            None => MESSAGE_BYTES,
        };
        if self.message.len() > longest {
            return invalid(format!("message is longer than {longest} bytes"));
        }
        if self.options.len() > OPTIONS {
            return invalid(format!("options are more than {OPTIONS}"));
        }
        if let Some(at) = self.options.iter().position(|it| it.len() > OPTION_BYTES) {
            let number = at + 1;
            return invalid(format!(
                "option {number} is longer than {OPTION_BYTES} bytes"
            ));
        }
        if self.kind == QuestionKind::ChoiceSelection && self.options.is_empty() {
            return invalid("options are missing; a choice needs one at least".to_owned());
        }
        let longest = Duration::from_millis(LONGEST_TIMEOUT_MS);
        if self.timeout.is_zero() || self.timeout > longest {
            return invalid(format!(
                "timeout is not within 1 to {LONGEST_TIMEOUT_MS} ms"
            ));
        }
        if self.secret && self.default.is_some() {
            return invalid("default would be shown; a secret has none".to_owned());
        }
        Ok(())
    }
}
