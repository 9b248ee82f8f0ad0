//! [`Question`]: what an interaction asks, and its validation limits.

use std::collections::HashSet;
use std::path::PathBuf;
use std::time::Duration;

use ostler_model::{ExecutionId, PromptEvidence, QuestionSource};
use serde::Serialize;

use crate::admission::approval::Approval;
use crate::admission::arguments::dedup;
use crate::error::InteractionError;
use crate::info::Prompt;
use crate::prompt::{OPTIONS, PromptPlace, QuestionKind, visible_line};

/// The default timeout of an interaction, in milliseconds.
pub const INTERACTION_TIMEOUT_MS: u64 = 300_000;
/// The longest timeout of an interaction, in milliseconds.
pub const LONGEST_TIMEOUT_MS: u64 = 24 * 3_600_000;
/// The longest message, in bytes.
pub const MESSAGE_BYTES: usize = 4_096;
/// The longest message of an approval, in bytes: it shows the whole request.
pub(crate) const APPROVAL_BYTES: usize = 64 * 1024;
/// The longest option.
pub const OPTION_BYTES: usize = 1_024;
/// The longest answer, in bytes: with its newline, one line of a terminal in canonical mode.
pub const ANSWER_BYTES: usize = 4_095;

/// The longest message for a prompt, in bytes.
const PROMPT_MESSAGE_BYTES: usize = 1_000;
/// The message for a prompt without text.
const NO_PROMPT_TEXT: &str = "It waits for input.";

/// A question to a person or an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Question {
    /// The expected kind of answer.
    pub kind: QuestionKind,
    /// The message to display, at most [`MESSAGE_BYTES`].
    pub message: String,
    /// The options; may be empty except for a choice. An option such as `2) the blue one` of a
    /// question about an execution may also be chosen by its number or by the text after it: the
    /// number is what is written to the input.
    pub options: Vec<String>,
    /// The answer that is used on timeout, or for an empty answer.
    pub default: Option<String>,
    /// The timeout.
    pub timeout: Duration,
    /// The execution whose input receives the answer.
    pub execution: Option<ExecutionId>,
    /// Who asks.
    pub source: QuestionSource,
    /// Where the file of a file selection must be: the answer is an existing file below it. None
    /// where the answer is for a command, which may be about to create the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace: Option<PathBuf>,
    /// The directory that it is about: that of the command or of the start to approve, else where
    /// a file is selected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub directory: Option<PathBuf>,
    /// What shows that a command waits for the answer; empty for every other question.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<PromptEvidence>,
    /// Where the prompt of a command stands in its output; none for every other question.
    #[serde(skip)]
    pub prompt_place: Option<PromptPlace>,
    /// Whether the answer must not be displayed, stored or requested in a form.
    pub secret: bool,
    /// The start to approve; then only a person may answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval: Option<Box<Approval>>,
}

impl Question {
    /// A client's question without options or default, for [`INTERACTION_TIMEOUT_MS`].
    #[must_use]
    pub fn new(kind: QuestionKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            options: Vec::new(),
            default: None,
            timeout: Duration::from_millis(INTERACTION_TIMEOUT_MS),
            execution: None,
            source: QuestionSource::Api,
            workspace: None,
            directory: None,
            evidence: Vec::new(),
            prompt_place: None,
            secret: false,
            approval: None,
        }
    }

    /// The question for a command's prompt ([`WaitFor::Prompt`](crate::WaitFor::Prompt)), for
    /// [`INTERACTION_TIMEOUT_MS`]. Its message is the visible text of the prompt.
    #[must_use]
    pub fn from_prompt(prompt: &Prompt, execution: ExecutionId) -> Self {
        let options = prompt.options.iter().take(OPTIONS);
        Self {
            options: dedup(options.map(|it| cut(it, OPTION_BYTES)).collect()),
            default: prompt.default.clone().filter(|_| !prompt.secret),
            execution: Some(execution),
            source: QuestionSource::Command,
            secret: prompt.secret,
            evidence: prompt.evidence.clone(),
            prompt_place: Some(prompt.place),
            ..Self::new(prompt.kind, prompt_message(&prompt.text))
        }
    }

    /// The question whether a person approves a start.
    pub(crate) fn for_approval(message: String, approval: Box<Approval>) -> Self {
        Self {
            options: vec!["yes".to_owned(), "no".to_owned()],
            source: QuestionSource::Policy,
            directory: Some(approval.cwd.as_path().to_owned()),
            approval: Some(approval),
            ..Self::new(QuestionKind::Confirmation, message)
        }
    }

    /// Whether it is the one that this command itself asks.
    pub(super) fn is_prompt_of(&self, execution: ExecutionId) -> bool {
        self.source == QuestionSource::Command && self.execution == Some(execution)
    }

    /// Whether two questions of a command are for one prompt, painted again. A later prompt may have
    /// the same text, and be for something else.
    pub(super) fn is_same_prompt(&self, other: &Self) -> bool {
        let is_same_place = match (self.prompt_place, other.prompt_place) {
            (Some(one), Some(other)) => one.is_same(other),
            (None, _) | (_, None) => false,
        };
        is_same_place
            && (self.kind, self.secret) == (other.kind, other.secret)
            && (&self.message, &self.options) == (&other.message, &other.options)
    }

    /// Validates the question.
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
        let mut different = HashSet::new();
        if let Some(twice) = self.options.iter().find(|it| !different.insert(*it)) {
            return invalid(format!("option '{twice}' is there twice"));
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

/// The text of a prompt as a message.
fn prompt_message(text: &str) -> String {
    match visible_line(text).trim() {
        "" => NO_PROMPT_TEXT.to_owned(),
        text => cut(text, PROMPT_MESSAGE_BYTES),
    }
}

/// The beginning of a text, at most this many bytes, with an ellipsis where something is left out.
fn cut(text: &str, most: usize) -> String {
    const ELLIPSIS: &str = "…";
    if text.len() <= most {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(most - ELLIPSIS.len());
    format!("{}{ELLIPSIS}", &text[..end])
}
