//! Splits chunks of output into lines.

use std::borrow::Cow;
use std::time::Duration;

use ostler_escape::{ControlSequence, EscapeEvent, EscapeParser};

use super::limits::{LINE_BYTES, OVERLAP_BYTES, PARTIAL};

/// Assembles the lines of one stream as displayed: without escape sequences and control characters;
/// a carriage return or a cursor movement to another line also ends a line. Chunks may end
/// anywhere, also inside a sequence or a character.
#[derive(Debug, Clone, Default)]
pub(super) struct LineSplitter {
    parser: EscapeParser,
    line: PartialLine,
    changed_at: Duration,
}

/// A line, or the part of a long one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LinePiece<'a> {
    /// The whole line, or as much of its beginning as is analysed at once.
    Beginning(&'a str),
    /// A later part; it begins with the end of the part before.
    Later(&'a str),
}

/// The line that is not finished yet, or the part of it that is not analysed yet.
#[derive(Debug, Clone, Default)]
struct PartialLine {
    text: Vec<u8>,
    /// Whether it was emitted as it is.
    emitted: bool,
    /// Whether parts of the line before this one were emitted.
    is_later: bool,
}

impl LineSplitter {
    /// Parses a chunk and emits each line that it ends, except empty ones.
    pub(super) fn push(&mut self, bytes: &[u8], at: Duration, mut emit: impl FnMut(LinePiece<'_>)) {
        self.changed_at = at;
        let Self { parser, line, .. } = self;
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let (text, is_ended) = match piece {
                [text @ .., b'\n'] => (text, true),
                text => (text, false),
            };
            parser.advance(text, |event, _| line.apply(event, &mut emit));
            if is_ended {
                // A newline ends everything: an unfinished sequence must not swallow the output
                // after it.
                parser.reset();
                line.finish(&mut emit);
            }
        }
    }

    /// When the unfinished line is due to be emitted; none if there is none.
    pub(super) fn due(&self) -> Option<Duration> {
        let is_new = !self.line.emitted && !self.line.text.is_empty();
        is_new.then(|| self.changed_at + PARTIAL)
    }

    /// Emits the unfinished line if it has not changed for long enough. It is kept: later output is
    /// appended to it.
    pub(super) fn flush_partial(&mut self, at: Duration, emit: impl FnMut(LinePiece<'_>)) {
        if self.due().is_some_and(|due| due <= at) {
            self.line.emitted = true;
            self.line.emit(emit);
        }
    }
}

impl PartialLine {
    fn apply(&mut self, event: EscapeEvent<'_>, emit: &mut impl FnMut(LinePiece<'_>)) {
        match event {
            EscapeEvent::Text(text) => self.write(text, emit),
            EscapeEvent::Control(byte) => self.control(byte, emit),
            EscapeEvent::ControlSequence(sequence) => self.control_sequence(&sequence, emit),
            EscapeEvent::Escape { .. } | EscapeEvent::Osc { .. } => {}
        }
    }

    fn write(&mut self, mut text: &[u8], emit: &mut impl FnMut(LinePiece<'_>)) {
        loop {
            let plain = text.iter().position(u8::is_ascii_control);
            let (plain, rest) = text.split_at(plain.unwrap_or(text.len()));
            self.append(plain, emit);
            let Some((control, rest)) = rest.split_first() else {
                return;
            };
            self.control(*control, emit);
            text = rest;
        }
    }

    fn control(&mut self, byte: u8, emit: &mut impl FnMut(LinePiece<'_>)) {
        match byte {
            b'\r' => self.finish(emit),
            b'\t' => self.append(b" ", emit),
            _ => {}
        }
    }

    /// Applies a control sequence to the line.
    fn control_sequence(
        &mut self,
        sequence: &ControlSequence<'_>,
        emit: &mut impl FnMut(LinePiece<'_>),
    ) {
        match (sequence.last(), sequence.first_param()) {
            // Cursor up, down, to a position, to the first column; erasing the screen or the whole
            // line.
            (b'A' | b'B' | b'E' | b'F' | b'H' | b'f' | b'd' | b'J', _)
            | (b'G', 0 | 1)
            | (b'K', 1 | 2) => self.finish(emit),
            // Cursor right.
            (b'C' | b'G', _) => self.append(b" ", emit),
            _ => {}
        }
    }

    fn append(&mut self, mut bytes: &[u8], emit: &mut impl FnMut(LinePiece<'_>)) {
        while !bytes.is_empty() {
            if self.text.len() == LINE_BYTES {
                self.begin_next_piece(emit);
            }
            let room = LINE_BYTES - self.text.len();
            let (fitting, rest) = bytes.split_at(bytes.len().min(room));
            self.text.extend_from_slice(fitting);
            self.emitted = false;
            bytes = rest;
        }
    }

    /// Emits the full piece, and keeps its end as the beginning of the next one.
    fn begin_next_piece(&mut self, emit: &mut impl FnMut(LinePiece<'_>)) {
        if !self.emitted {
            self.emit(&mut *emit);
        }
        let is_inside = |byte: &u8| byte & 0b1100_0000 == 0b1000_0000;
        let cut = self.text.len() - OVERLAP_BYTES;
        let inside = self.text[cut..].iter().take_while(|it| is_inside(it));
        self.text.drain(..cut + inside.count());
        self.is_later = true;
    }

    fn finish(&mut self, emit: &mut impl FnMut(LinePiece<'_>)) {
        if !self.emitted {
            self.emit(emit);
        }
        self.text.clear();
        self.emitted = false;
        self.is_later = false;
    }

    /// Emits the visible text.
    fn emit(&self, mut emit: impl FnMut(LinePiece<'_>)) {
        let text = String::from_utf8_lossy(whole_characters(&self.text));
        let text = text.trim();
        if text.is_empty() {
            return;
        }
        let visible: Cow<'_, str> = if text.is_ascii() {
            text.into()
        } else {
            text.chars().filter(|it| !it.is_control()).collect()
        };
        emit(if self.is_later {
            LinePiece::Later(visible.trim())
        } else {
            LinePiece::Beginning(visible.trim())
        });
    }
}

/// The bytes without a character at their end that is not complete.
fn whole_characters(bytes: &[u8]) -> &[u8] {
    match str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => &bytes[..error.valid_up_to()],
        Ok(_) | Err(_) => bytes,
    }
}

#[cfg(test)]
#[path = "lines_tests.rs"]
mod tests;
