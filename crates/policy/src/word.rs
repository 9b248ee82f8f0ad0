//! One word of a command line, and how certain its value is.

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

/// One word, as far as it is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CommandWord {
    /// Its text; a best guess unless it is certain.
    pub(crate) text: String,
    /// How certain it is.
    pub(crate) certainty: Certainty,
    /// Its unknown part.
    pub(crate) unknown: UnknownPart,
}

impl CommandWord {
    pub(crate) fn certain(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            certainty: Certainty::Certain,
            unknown: UnknownPart::default(),
        }
    }

    pub(crate) fn opaque(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            certainty: Certainty::Opaque,
            unknown: UnknownPart::anything(),
        }
    }

    pub(crate) fn is_certain(&self) -> bool {
        self.certainty == Certainty::Certain
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
