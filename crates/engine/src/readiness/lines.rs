//! Lines out of pieces of output.

use std::time::Duration;

use super::limits::{LINE_BYTES, PARTIAL};

/// Puts the lines of one stream together as a person would see them: without escape sequences
/// and control characters; a carriage return or a jump of the cursor ends a line too. Pieces may
/// end anywhere, inside of a sequence or of a character too.
#[derive(Debug, Clone, Default)]
pub(super) struct Lines {
    line: Vec<u8>,
    within: Within,
    touched: Duration,
    /// Whether the unfinished line was told as it stands.
    told: bool,
}

/// Where in an escape sequence (ECMA-48) the last byte stood.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Within {
    #[default]
    Text,
    /// After ESC.
    Escape,
    /// After ESC and an intermediate byte: one more ends it.
    Designation,
    /// A control sequence, with the first byte of its parameters.
    Control(Option<u8>),
    /// OSC, DCS and the like, up to BEL or ST.
    String,
    /// In one of those, after ESC.
    StringEscape,
}

const ESC: u8 = 0x1b;
const BEL: u8 = 0x07;

impl Lines {
    /// Takes in a piece and hands over each line that is finished; empty ones are none.
    pub(super) fn push(&mut self, mut bytes: &[u8], at: Duration, mut each: impl FnMut(&str)) {
        self.touched = at;
        while !bytes.is_empty() {
            if self.within == Within::Text {
                let plain = bytes
                    .iter()
                    .position(|byte| *byte < b' ' || *byte == 0x7f)
                    .unwrap_or(bytes.len());
                self.keep(&bytes[..plain]);
                bytes = &bytes[plain..];
            }
            if let Some((byte, rest)) = bytes.split_first() {
                self.step(*byte, &mut each);
                bytes = rest;
            }
        }
    }

    /// When the unfinished line is to be taken for a line; none where there is none.
    pub(super) fn due(&self) -> Option<Duration> {
        (!self.told && !self.line.is_empty()).then(|| self.touched + PARTIAL)
    }

    /// Hands over the unfinished line where it has stood long enough. It is kept: what follows
    /// is part of it.
    pub(super) fn rest(&mut self, at: Duration, each: impl FnMut(&str)) {
        if self.due().is_some_and(|due| due <= at) {
            self.told = true;
            tell(&self.line, each);
        }
    }

    fn step(&mut self, byte: u8, each: &mut impl FnMut(&str)) {
        self.within = match (self.within, byte) {
            (Within::Text, ESC) => Within::Escape,
            // A newline ends everything: a sequence that was never finished must not swallow
            // the output that follows.
            (_, b'\n') | (Within::Text, b'\r') => {
                self.end(each);
                Within::Text
            }
            (Within::Text, b'\t') => {
                self.keep(b" ");
                Within::Text
            }
            (Within::Text, _) => {
                self.keep(if byte < b' ' || byte == 0x7f {
                    &[]
                } else {
                    std::slice::from_ref(&byte)
                });
                Within::Text
            }
            (Within::Escape, b'[') => Within::Control(None),
            (Within::Escape, b']' | b'P' | b'X' | b'^' | b'_') => Within::String,
            (Within::Escape, b' '..=b'/') => Within::Designation,
            (Within::Escape | Within::Control(_), ESC) => Within::Escape,
            (Within::Escape | Within::Designation, _) => Within::Text,
            (Within::Control(first), b'0'..=b'?') => Within::Control(first.or(Some(byte))),
            (Within::Control(first), b' '..=b'/') => Within::Control(first),
            (Within::Control(first), _) => {
                self.moved(first, byte, each);
                Within::Text
            }
            (Within::String, BEL) | (Within::StringEscape, b'\\') => Within::Text,
            (Within::String | Within::StringEscape, ESC) => Within::StringEscape,
            (Within::String, _) => Within::String,
            (Within::StringEscape, _) => {
                // ESC that does not end the string begins something new.
                self.within = Within::Escape;
                self.step(byte, each);
                self.within
            }
        };
    }

    /// What a control sequence does to the line.
    fn moved(&mut self, first: Option<u8>, last: u8, each: &mut impl FnMut(&str)) {
        match (last, first) {
            // Up, down, to a place, to the first column; the screen or the whole line erased.
            (b'A' | b'B' | b'E' | b'F' | b'H' | b'f' | b'd' | b'J', _)
            | (b'G', None | Some(b'0' | b'1'))
            | (b'K', Some(b'1' | b'2')) => self.end(each),
            // To the right.
            (b'C' | b'G', _) => self.keep(b" "),
            _ => {}
        }
    }

    fn keep(&mut self, bytes: &[u8]) {
        let room = LINE_BYTES.saturating_sub(self.line.len());
        let kept = &bytes[..bytes.len().min(room)];
        if !kept.is_empty() {
            self.line.extend_from_slice(kept);
            self.told = false;
        }
    }

    fn end(&mut self, each: &mut impl FnMut(&str)) {
        if !self.told {
            tell(&self.line, each);
        }
        self.line.clear();
        self.told = false;
    }
}

/// Hands over what is visible of a line.
fn tell(line: &[u8], mut each: impl FnMut(&str)) {
    let text = String::from_utf8_lossy(line);
    let text = text.trim();
    if text.is_empty() {
        return;
    }
    if text.is_ascii() {
        each(text);
    } else {
        let visible: String = text.chars().filter(|it| !it.is_control()).collect();
        each(visible.trim());
    }
}

#[cfg(test)]
#[path = "lines_tests.rs"]
mod tests;
