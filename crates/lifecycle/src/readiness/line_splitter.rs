//! Splits chunks of output into lines.

use std::time::Duration;

use super::limits::{LINE_BYTES, PARTIAL};

/// Puts the lines of one stream together as a person would see them: without escape sequences
/// and control characters; a carriage return or a jump of the cursor ends a line too. Pieces may
/// end anywhere, inside of a sequence or of a character too.
#[derive(Debug, Clone, Default)]
pub(super) struct LineSplitter {
    line: Vec<u8>,
    state: EscapeState,
    changed_at: Duration,
    /// Whether the unfinished line was told as it stands.
    emitted: bool,
}

/// Where in an escape sequence (ECMA-48) the last byte stood.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum EscapeState {
    #[default]
    Text,
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

impl LineSplitter {
    /// Takes in a piece and hands over each line that is finished; empty ones are none.
    pub(super) fn push(&mut self, mut bytes: &[u8], at: Duration, mut emit: impl FnMut(&str)) {
        self.changed_at = at;
        while !bytes.is_empty() {
            if self.state == EscapeState::Text {
                let plain = bytes
                    .iter()
                    .position(|byte| *byte < b' ' || *byte == 0x7f)
                    .unwrap_or(bytes.len());
                self.append(&bytes[..plain]);
                bytes = &bytes[plain..];
            }
            if let Some((byte, rest)) = bytes.split_first() {
                self.step(*byte, &mut emit);
                bytes = rest;
            }
        }
    }

    /// When the unfinished line is to be taken for a line; none where there is none.
    pub(super) fn due(&self) -> Option<Duration> {
        (!self.emitted && !self.line.is_empty()).then(|| self.changed_at + PARTIAL)
    }

    /// Hands over the unfinished line where it has stood long enough. It is kept: what follows
    /// is part of it.
    pub(super) fn flush_partial(&mut self, at: Duration, emit: impl FnMut(&str)) {
        if self.due().is_some_and(|due| due <= at) {
            self.emitted = true;
            emit_line(&self.line, emit);
        }
    }

    fn step(&mut self, byte: u8, emit: &mut impl FnMut(&str)) {
        self.state = match (self.state, byte) {
            (EscapeState::Text, ESC) => EscapeState::Escape,
            // A newline ends everything: a sequence that was never finished must not swallow
            // the output that follows.
            (_, b'\n') | (EscapeState::Text, b'\r') => {
                self.finish_line(emit);
                EscapeState::Text
            }
            (EscapeState::Text, b'\t') => {
                self.append(b" ");
                EscapeState::Text
            }
            (EscapeState::Text, _) => {
                self.append(if byte < b' ' || byte == 0x7f {
                    &[]
                } else {
                    std::slice::from_ref(&byte)
                });
                EscapeState::Text
            }
            (EscapeState::Escape, b'[') => EscapeState::Control(None),
            (EscapeState::Escape, b']' | b'P' | b'X' | b'^' | b'_') => EscapeState::String,
            (EscapeState::Escape, b' '..=b'/') => EscapeState::Designation,
            (EscapeState::Escape | EscapeState::Control(_), ESC) => EscapeState::Escape,
            (EscapeState::Escape | EscapeState::Designation, _) => EscapeState::Text,
            (EscapeState::Control(first), b'0'..=b'?') => {
                EscapeState::Control(first.or(Some(byte)))
            }
            (EscapeState::Control(first), b' '..=b'/') => EscapeState::Control(first),
            (EscapeState::Control(first), _) => {
                self.control_sequence(first, byte, emit);
                EscapeState::Text
            }
            (EscapeState::String, BEL) | (EscapeState::StringEscape, b'\\') => EscapeState::Text,
            (EscapeState::String | EscapeState::StringEscape, ESC) => EscapeState::StringEscape,
            (EscapeState::String, _) => EscapeState::String,
            (EscapeState::StringEscape, _) => {
                // ESC that does not end the string begins something new.
                self.state = EscapeState::Escape;
                self.step(byte, emit);
                self.state
            }
        };
    }

    /// What a control sequence does to the line.
    fn control_sequence(&mut self, first: Option<u8>, last: u8, emit: &mut impl FnMut(&str)) {
        match (last, first) {
            // Up, down, to a place, to the first column; the screen or the whole line erased.
            (b'A' | b'B' | b'E' | b'F' | b'H' | b'f' | b'd' | b'J', _)
            | (b'G', None | Some(b'0' | b'1'))
            | (b'K', Some(b'1' | b'2')) => self.finish_line(emit),
            // To the right.
            (b'C' | b'G', _) => self.append(b" "),
            _ => {}
        }
    }

    fn append(&mut self, bytes: &[u8]) {
        let room = LINE_BYTES.saturating_sub(self.line.len());
        let fitting = &bytes[..bytes.len().min(room)];
        if !fitting.is_empty() {
            self.line.extend_from_slice(fitting);
            self.emitted = false;
        }
    }

    fn finish_line(&mut self, emit: &mut impl FnMut(&str)) {
        if !self.emitted {
            emit_line(&self.line, emit);
        }
        self.line.clear();
        self.emitted = false;
    }
}

/// Hands over what is visible of a line.
fn emit_line(line: &[u8], mut emit: impl FnMut(&str)) {
    let text = String::from_utf8_lossy(line);
    let text = text.trim();
    if text.is_empty() {
        return;
    }
    if text.is_ascii() {
        emit(text);
    } else {
        let visible: String = text.chars().filter(|it| !it.is_control()).collect();
        emit(visible.trim());
    }
}

#[cfg(test)]
#[path = "lines_tests.rs"]
mod tests;
