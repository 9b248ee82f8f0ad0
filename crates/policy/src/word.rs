//! One word of a command line, and how certain its value is.

use ostler_model::ByteString;

/// How certain a word's value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Certainty {
    /// Known completely.
    Certain,
    /// File names below the working directory that cannot look like an option.
    Names,
    /// File names of the working directory; one could look like an option.
    AnyNames,
    /// Less: it contains variables, expansions, or the output of another command.
    Opaque,
}

/// The unknown part of a word, and what that makes possible.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct UnknownPart {
    /// The variables in it; [`ANYTHING`] stands for any other source.
    pub(crate) variables: Vec<String>,
    /// Whether it begins with an unknown part, and so may be an option.
    pub(crate) at_start: bool,
    /// Whether a shell may split it into several words.
    pub(crate) may_split: bool,
}

/// In place of a variable's name: a value from any source.
pub(crate) const ANYTHING: &str = "*";

impl UnknownPart {
    pub(crate) fn anything() -> Self {
        Self {
            variables: vec![ANYTHING.to_owned()],
            at_start: true,
            may_split: true,
        }
    }
}

/// A part of a word, in the order of its source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum WordPart {
    /// Text, with its quotes and escapes removed.
    Literal(String),
    /// `$NAME`, `${NAME}`, `${NAME:-default}`.
    Variable {
        /// Its name.
        name: String,
        /// The value where it is unset or empty.
        default: Option<String>,
        /// The text of the expansion.
        source: String,
    },
    /// The text of any other expansion.
    Expansion(String),
}

/// One word, as far as it is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandWord {
    /// Its text; a best guess unless it is certain.
    pub(crate) text: String,
    /// How certain it is.
    pub(crate) certainty: Certainty,
    /// Its unknown part.
    pub(crate) unknown: UnknownPart,
    /// All of it.
    pub(crate) parts: Vec<WordPart>,
}

impl CommandWord {
    pub(crate) fn certain(text: impl Into<String>) -> Self {
        let text = text.into();
        Self {
            parts: vec![WordPart::Literal(text.clone())],
            text,
            certainty: Certainty::Certain,
            unknown: UnknownPart::default(),
        }
    }

    pub(crate) fn opaque(text: impl Into<String>) -> Self {
        let text = text.into();
        Self {
            parts: vec![WordPart::Expansion(text.clone())],
            text,
            certainty: Certainty::Opaque,
            unknown: UnknownPart::anything(),
        }
    }

    /// A word of a command without a shell.
    pub(crate) fn from_argument(text: &ByteString) -> Self {
        match std::str::from_utf8(text.as_bytes()) {
            Ok(text) => Self::certain(text),
            Err(_) => Self::opaque(text.to_string_lossy()),
        }
    }

    pub(crate) fn is_certain(&self) -> bool {
        self.certainty == Certainty::Certain
    }

    /// The word with the variables that `variable` knows in place of their expansions; every other
    /// expansion stays as it is written.
    #[must_use]
    pub fn expand(&self, variable: &dyn Fn(&str) -> Option<String>) -> String {
        let value = |part: &WordPart| match part {
            WordPart::Literal(text) | WordPart::Expansion(text) => text.clone(),
            WordPart::Variable {
                name,
                default,
                source,
            } => {
                let value = variable(name);
                let value = value.filter(|it| default.is_none() || !it.is_empty());
                value
                    .or_else(|| default.clone())
                    .unwrap_or_else(|| source.clone())
            }
        };
        self.parts.iter().map(value).collect()
    }
}

/// The texts of words, for messages.
pub(crate) fn texts(words: &[CommandWord]) -> Vec<String> {
    words.iter().map(|word| word.text.clone()).collect()
}

/// The last part of a path.
pub(crate) fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Whether a character is invisible, or changes how others are displayed.
pub(crate) fn is_invisible(c: char) -> bool {
    let control = c.is_control() && !matches!(c, '\n' | '\t');
    let blank = c.is_whitespace() && !matches!(c, ' ' | '\n' | '\t');
    control
        || blank
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffd}' | '\u{e0000}'..='\u{e0fff}')
}
