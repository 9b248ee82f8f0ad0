//! Lines of output.

use std::borrow::Cow;
use std::fmt;

use ostler_escape::{EscapeEvent, EscapeParser};
use ostler_model::StreamName;
use serde::Serialize;

use crate::limits::{LINE_BYTES, cut};

/// Where a line is in the output of an execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct OutputPosition {
    /// The stream of the line.
    pub stream: StreamName,
    /// Its number within the stream, from 1.
    pub line: u64,
    /// The offset of its first byte in the output.
    pub offset: u64,
}

impl fmt::Display for OutputPosition {
    /// For people: `stderr line 12`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stream = match self.stream {
            StreamName::Stdout => "stdout",
            StreamName::Stderr => "stderr",
            StreamName::Pty => "pty",
            StreamName::Stdin => "stdin",
        };
        write!(f, "{stream} line {}", self.line)
    }
}

/// A line as the command printed it, decoded, without its newline.
#[derive(Debug, Clone, Copy)]
pub struct RawLine<'a> {
    /// Where it is.
    pub position: OutputPosition,
    /// Its text, with escape sequences.
    pub text: &'a str,
}

/// A line without control characters, cut at [`LINE_BYTES`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct PlainLine<'a> {
    pub(crate) position: OutputPosition,
    pub(crate) text: &'a str,
}

/// The text without escape sequences and control characters except tabs; of a line that was
/// drawn again, what was drawn last.
pub(crate) fn plain_text(text: &str) -> Cow<'_, str> {
    let text = cut(text, LINE_BYTES).trim_end_matches(['\r', '\n']);
    if !text.contains(|c: char| c.is_control() && c != '\t') {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len());
    EscapeParser::default().advance(text.as_bytes(), |event, _| {
        if let EscapeEvent::Text(bytes) = event {
            for c in String::from_utf8_lossy(bytes).chars() {
                match c {
                    '\r' => plain.clear(),
                    '\t' => plain.push(c),
                    c if c.is_control() => {}
                    c => plain.push(c),
                }
            }
        }
    });
    Cow::Owned(plain)
}
