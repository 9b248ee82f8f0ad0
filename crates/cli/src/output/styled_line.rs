//! Styled lines. Text is written to a terminal as a [`StyledLine`] only, and a line holds no
//! control sequence but our own colours: untrusted text cannot deceive its reader.

use std::borrow::Cow;

use ostler_model::{ByteString, ColourMode, visible, visible_output};

const RED: &str = "\x1b[31m";
const GREEN: &str = "\x1b[32m";
const YELLOW: &str = "\x1b[33m";
const BLUE: &str = "\x1b[34m";
const DIM: &str = "\x1b[2m";
const RESET: &str = "\x1b[0m";

/// The colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Colour {
    Red,
    Green,
    Yellow,
    Blue,
    Dim,
}

impl Colour {
    const fn sequence(self) -> &'static str {
        match self {
            Self::Red => RED,
            Self::Green => GREEN,
            Self::Yellow => YELLOW,
            Self::Blue => BLUE,
            Self::Dim => DIM,
        }
    }
}

/// One line without its end, in spans.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct StyledLine(Vec<StyledSpan>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct StyledSpan {
    colour: Option<Colour>,
    /// Text escaped by [`visible()`] or [`visible_output()`].
    text: String,
}

impl StyledLine {
    /// The text in this colour, or in none.
    pub(crate) fn coloured(colour: Option<Colour>, text: &str) -> Self {
        let text = visible(text).into_owned();
        Self(vec![StyledSpan { colour, text }])
    }

    /// A line that a program printed or a file holds, without its end.
    pub(crate) fn from_output(line: &[u8], colours: ColourMode, colour: Option<Colour>) -> Self {
        let text = visible_output(line, colours);
        Self(vec![StyledSpan { colour, text }])
    }

    /// Appends to the line.
    #[must_use]
    pub(crate) fn and(mut self, more: impl Into<Self>) -> Self {
        self.0.extend(more.into().0);
        self
    }

    /// Pads the line with blanks to at least this many characters.
    #[must_use]
    pub(crate) fn padded(self, chars: usize) -> Self {
        let missing = chars.saturating_sub(self.width());
        self.and(" ".repeat(missing))
    }

    /// Shortens the line to at most this many characters; a longer line ends with `…`.
    #[must_use]
    pub(crate) fn shortened(mut self, chars: usize) -> Self {
        if self.width() <= chars {
            return self;
        }
        let mut remaining = chars.saturating_sub(1);
        for piece in &mut self.0 {
            let cut = piece.text.char_indices().nth(remaining).map(|(at, _)| at);
            piece.text.truncate(cut.unwrap_or(piece.text.len()));
            remaining -= piece.text.chars().count();
        }
        self.and("…")
    }

    /// The width in characters; colours have none.
    pub(crate) fn width(&self) -> usize {
        self.0.iter().map(|piece| piece.text.chars().count()).sum()
    }

    /// The bytes to write, with colours.
    pub(crate) fn rendered(&self) -> String {
        let paint = |piece: &StyledSpan| match piece.colour {
            Some(colour) => format!("{}{}{RESET}", colour.sequence(), piece.text),
            None => piece.text.clone(),
        };
        self.0.iter().map(paint).collect()
    }

    pub(crate) fn trimmed(mut self) -> Self {
        while let Some(last) = self.0.last_mut().filter(|piece| piece.colour.is_none()) {
            last.text.truncate(last.text.trim_end().len());
            if !last.text.is_empty() {
                break;
            }
            self.0.pop();
        }
        self
    }
}

impl From<&str> for StyledLine {
    fn from(text: &str) -> Self {
        Self::coloured(None, text)
    }
}

impl From<String> for StyledLine {
    fn from(text: String) -> Self {
        Self::from(text.as_str())
    }
}

impl From<&String> for StyledLine {
    fn from(text: &String) -> Self {
        Self::from(text.as_str())
    }
}

impl From<Cow<'_, str>> for StyledLine {
    fn from(text: Cow<'_, str>) -> Self {
        Self::from(text.as_ref())
    }
}

impl From<&ByteString> for StyledLine {
    fn from(text: &ByteString) -> Self {
        Self::from(text.to_string_lossy())
    }
}

/// A line of several parts: `line!["pid ", style.dim(&pid)]`.
macro_rules! line {
    ($($piece:expr),+ $(,)?) => {
        $crate::output::StyledLine::default()$(.and($piece))+
    };
}

/// The cells of a row, each a line.
macro_rules! cells {
    ($($cell:expr),+ $(,)?) => {
        vec![$($crate::output::StyledLine::from($cell)),+]
    };
}

pub(crate) use {cells, line};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_text_controls_nothing() {
        let line = line![
            "is ",
            StyledLine::coloured(Some(Colour::Red), "a\x1b[2Jb"),
            "\r",
            "c"
        ];
        assert_eq!(line.rendered(), format!(r"is {RED}a\x1b[2Jb{RESET}\rc"));
        assert_eq!(line.width(), "is a\\x1b[2Jb\\rc".len());
    }

    #[test]
    fn lines_are_padded_shortened_and_trimmed() {
        let red = || line![StyledLine::coloured(Some(Colour::Red), "abc"), "def"];
        assert_eq!(red().padded(8).width(), 8);
        assert_eq!(red().padded(8).trimmed(), red().trimmed());
        assert_eq!(red().shortened(6), red());
        assert_eq!(red().shortened(5).rendered(), format!("{RED}abc{RESET}d…"));
        assert_eq!(red().shortened(2).rendered(), format!("{RED}a{RESET}…"));
        assert_eq!(StyledLine::from("   ").trimmed().rendered(), "");
    }
}
