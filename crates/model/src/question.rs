//! The kinds and sources of questions.

use serde::{Deserialize, Serialize};

/// The expected kind of answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QuestionKind {
    /// Yes or no.
    Confirmation,
    /// A line of text.
    InputRequest,
    /// One of the options.
    ChoiceSelection,
    /// A path.
    FileSelection,
}

impl QuestionKind {
    /// Its name in every API, for example `input_request`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Confirmation => "confirmation",
            Self::InputRequest => "input_request",
            Self::ChoiceSelection => "choice_selection",
            Self::FileSelection => "file_selection",
        }
    }
}

/// Who asks a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QuestionSource {
    /// A client of the API.
    Api,
    /// A command that waits for input.
    Command,
    /// The command policy, about a start.
    Policy,
}

/// What shows that a command waits for an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PromptEvidence {
    /// A process in the foreground of its terminal is blocked in a read of it.
    ReadsTerminal,
    /// A process is blocked in a read of the pipe that is the command's input.
    ReadsPipe,
    /// A process waits for several descriptors, of which the command's input is one.
    PollsInput,
    /// The terminal does not echo what is typed.
    EchoOff,
    /// The last line has the words or the form of a prompt.
    PromptWords,
}
