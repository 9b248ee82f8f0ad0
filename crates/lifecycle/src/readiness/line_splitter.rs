//! Splits chunks of output into lines.

use std::time::Duration;

use ostler_escape::{ControlSequence, EscapeEvent, EscapeParser};

use super::limits::{LINE_BYTES, PARTIAL};

/// Assembles the lines of one stream as displayed: without escape sequences and control characters;
/// a carriage return or a cursor movement to another line also ends a line. Chunks may end
/// anywhere, also inside a sequence or a character.
#[derive(Debug, Clone, Default)]
pub(super) struct LineSplitter {
    parser: EscapeParser,
    line: PartialLine,
    changed_at: Duration,
}

/// The line that is not finished yet.
#[derive(Debug, Clone, Default)]
struct PartialLine {
    text: Vec<u8>,
    /// Whether it was emitted as it is.
    emitted: bool,
}

impl LineSplitter {
    /// Parses a chunk and emits each line that it ends, except empty ones.
    pub(super) fn push(&mut self, bytes: &[u8], at: Duration, mut emit: impl FnMut(&str)) {
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
    pub(super) fn flush_partial(&mut self, at: Duration, emit: impl FnMut(&str)) {
        if self.due().is_some_and(|due| due <= at) {
            self.line.emitted = true;
            emit_line(&self.line.text, emit);
        }
    }
}

impl PartialLine {
    fn apply(&mut self, event: EscapeEvent<'_>, emit: &mut impl FnMut(&str)) {
        match event {
            EscapeEvent::Text(text) => self.write(text, emit),
            EscapeEvent::Control(byte) => self.control(byte, emit),
            EscapeEvent::ControlSequence(sequence) => self.control_sequence(&sequence, emit),
            EscapeEvent::Escape { .. } | EscapeEvent::Osc { .. } => {}
        }
    }

    fn write(&mut self, mut text: &[u8], emit: &mut impl FnMut(&str)) {
        loop {
            let plain = text.iter().position(u8::is_ascii_control);
            let (plain, rest) = text.split_at(plain.unwrap_or(text.len()));
            self.append(plain);
            let Some((control, rest)) = rest.split_first() else {
                return;
            };
            self.control(*control, emit);
            text = rest;
        }
    }

    fn control(&mut self, byte: u8, emit: &mut impl FnMut(&str)) {
        match byte {
            b'\r' => self.finish(emit),
            b'\t' => self.append(b" "),
            _ => {}
        }
    }

    /// Applies a control sequence to the line.
    fn control_sequence(&mut self, sequence: &ControlSequence<'_>, emit: &mut impl FnMut(&str)) {
        match (sequence.last(), sequence.first_param()) {
            // Cursor up, down, to a position, to the first column; erasing the screen or the whole
            // line.
            (b'A' | b'B' | b'E' | b'F' | b'H' | b'f' | b'd' | b'J', _)
            | (b'G', 0 | 1)
            | (b'K', 1 | 2) => self.finish(emit),
            // Cursor right.
            (b'C' | b'G', _) => self.append(b" "),
            _ => {}
        }
    }

    fn append(&mut self, bytes: &[u8]) {
        let room = LINE_BYTES.saturating_sub(self.text.len());
        let fitting = &bytes[..bytes.len().min(room)];
        if !fitting.is_empty() {
            self.text.extend_from_slice(fitting);
            self.emitted = false;
        }
    }

    fn finish(&mut self, emit: &mut impl FnMut(&str)) {
        if !self.emitted {
            emit_line(&self.text, emit);
        }
        self.text.clear();
        self.emitted = false;
    }
}

/// Emits the visible text of a line.
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
