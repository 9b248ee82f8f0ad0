//! Applies escape sequences within one line, byte by byte, so that chunks may have any size.

use ostler_escape::{ControlSequence, EscapeEvent, EscapeParser};

const ESC: u8 = 0x1b;
const BACKSPACE: u8 = 0x08;
const DELETE: u8 = 0x7f;
/// The most cells that one sequence can move, delete or insert.
const CELLS_MAX: u16 = 1_000;

/// The effect of a byte of output on its line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineChange {
    /// Writes a byte of text.
    Write(u8),
    /// Moves the cursor to a column, counted from 0.
    Column(usize),
    /// Moves the cursor right.
    Right(usize),
    /// Moves the cursor left.
    Left(usize),
    /// Erases the text after the cursor.
    EraseAfter,
    /// Erases the line, or moves the cursor to another row.
    Clear,
    /// Deletes characters at the cursor.
    Delete(usize),
    /// Inserts blanks at the cursor.
    Insert(usize),
    /// Ends the line.
    End,
    Nothing,
}

/// Separates text from escape sequences.
#[derive(Debug, Default)]
pub(super) struct LineParser(EscapeParser);

impl LineParser {
    /// Whether the next byte is not inside an escape sequence.
    pub(super) const fn is_in_text(&self) -> bool {
        self.0.is_in_text()
    }

    /// Parses the next byte.
    pub(super) fn feed(&mut self, byte: u8) -> LineChange {
        if self.is_in_text() && byte != ESC {
            return text_change(byte);
        }
        let mut change = LineChange::Nothing;
        self.0.advance(&[byte], |event, _| {
            change = match event {
                EscapeEvent::Control(control) => text_change(control),
                EscapeEvent::ControlSequence(sequence) => sequence_change(sequence),
                EscapeEvent::Text(_) | EscapeEvent::Escape { .. } | EscapeEvent::Osc { .. } => {
                    LineChange::Nothing
                }
            };
        });
        if change == LineChange::End {
            // Cancels an unfinished sequence.
            self.0.reset();
        }
        change
    }
}

/// The effect of a byte outside of sequences, or of a control within one.
const fn text_change(byte: u8) -> LineChange {
    match byte {
        b'\n' => LineChange::End,
        b'\r' => LineChange::Column(0),
        BACKSPACE => LineChange::Left(1),
        b'\t' => LineChange::Write(byte),
        0..=0x1f | DELETE => LineChange::Nothing,
        _ => LineChange::Write(byte),
    }
}

/// The effect of a control sequence on its line. Those with several parameters or a private marker
/// have none, except that they may lead to another row.
fn sequence_change(sequence: ControlSequence<'_>) -> LineChange {
    let last = sequence.last();
    if matches!(last, b'H' | b'f') {
        return LineChange::Clear;
    }
    if sequence.params().count() > 1 || !sequence.intermediates().is_empty() {
        return LineChange::Nothing;
    }
    let number = sequence.first_param().min(CELLS_MAX);
    let count = usize::from(number.max(1));
    match (last, number) {
        (b'G' | b'`', _) => LineChange::Column(count - 1),
        (b'C' | b'a', _) => LineChange::Right(count),
        (b'D', _) => LineChange::Left(count),
        (b'P', _) => LineChange::Delete(count),
        (b'@', _) => LineChange::Insert(count),
        (b'K' | b'J', 0) => LineChange::EraseAfter,
        (b'K' | b'J', 2) => LineChange::Clear,
        _ => LineChange::Nothing,
    }
}

/// One line with a cursor. Every character counts as one cell.
#[derive(Debug, Clone, Default)]
pub(super) struct LineBuffer {
    text: Vec<u8>,
    /// The index in `text` at which the next byte is written.
    cursor: usize,
    /// Whether the cursor was moved to the first column and has not moved since: the next text
    /// overwrites the whole line.
    is_home: bool,
}

impl LineBuffer {
    /// A line with this text, its cursor at the end.
    pub(super) const fn from_text(text: Vec<u8>) -> Self {
        Self {
            cursor: text.len(),
            text,
            is_home: false,
        }
    }

    /// The current text.
    pub(super) fn text(&self) -> &[u8] {
        &self.text
    }

    /// Whether a change removes existing text.
    pub(super) fn would_erase(&self, change: LineChange) -> bool {
        let at_end = self.cursor >= self.text.len();
        match change {
            LineChange::Write(byte) => self.is_home || (!at_end && self.text[self.cursor] != byte),
            LineChange::EraseAfter | LineChange::Delete(_) | LineChange::Insert(_) => !at_end,
            LineChange::Clear => true,
            LineChange::Column(_)
            | LineChange::Right(_)
            | LineChange::Left(_)
            | LineChange::End
            | LineChange::Nothing => false,
        }
    }

    /// Applies a change.
    pub(super) fn apply(&mut self, change: LineChange) {
        match change {
            LineChange::Write(byte) => self.write(byte),
            LineChange::Column(column) => {
                self.cursor = 0;
                self.right(column);
                self.is_home = column == 0;
            }
            LineChange::Right(count) => self.right(count),
            LineChange::Left(count) => {
                for _ in 0..count {
                    self.cursor = char_start(&self.text, self.cursor);
                }
            }
            LineChange::EraseAfter => {
                self.text.truncate(self.cursor);
                self.is_home = false;
            }
            LineChange::Clear => *self = Self::default(),
            LineChange::Delete(count) => {
                let end = (0..count).fold(self.cursor, |at, _| char_end(&self.text, at));
                self.text.drain(self.cursor..end);
            }
            LineChange::Insert(count) => {
                let blanks = std::iter::repeat_n(b' ', count);
                self.text.splice(self.cursor..self.cursor, blanks);
            }
            LineChange::End | LineChange::Nothing => {}
        }
    }

    /// Discards all but the last `bytes` bytes.
    pub(super) fn keep_last(&mut self, bytes: usize) {
        let gone = self.text.len().saturating_sub(bytes);
        self.text.drain(..gone);
        self.cursor = self.cursor.saturating_sub(gone);
    }

    fn write(&mut self, byte: u8) {
        if self.is_home {
            *self = Self::default();
        }
        let is_continued = byte & 0xc0 == 0x80;
        if self.cursor >= self.text.len() {
            self.text.push(byte);
        } else if is_continued {
            self.text.insert(self.cursor, byte);
        } else {
            let end = char_end(&self.text, self.cursor);
            self.text[self.cursor] = byte;
            self.text.drain(self.cursor + 1..end);
        }
        self.cursor += 1;
    }

    fn right(&mut self, count: usize) {
        self.is_home = false;
        for _ in 0..count {
            if self.cursor >= self.text.len() {
                self.text.push(b' ');
            }
            self.cursor = char_end(&self.text, self.cursor);
        }
    }
}

/// The end of the character at an index.
fn char_end(text: &[u8], index: usize) -> usize {
    let rest = text.get(index + 1..).unwrap_or_default();
    let more = rest.iter().take_while(|byte| **byte & 0xc0 == 0x80);
    (index + 1 + more.count()).min(text.len())
}

/// The beginning of the character before an index.
fn char_start(text: &[u8], index: usize) -> usize {
    let head = text.get(..index).unwrap_or(text);
    head.iter()
        .rposition(|byte| byte & 0xc0 != 0x80)
        .unwrap_or(0)
}

/// The text of a line after all its escape sequences were applied, as it reads on a screen.
#[must_use]
pub fn plain_text(line: &[u8]) -> Vec<u8> {
    let (mut parser, mut row) = (LineParser::default(), LineBuffer::default());
    for &byte in line {
        row.apply(parser.feed(byte));
    }
    row.text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn text_as_it_reads() {
        for (raw, text) in [
            (&b"plain"[..], &b"plain"[..]),
            (b"\x1b[?2004l\rfin", b"fin"),
            (b"\x1b[1;32mok\x1b[0m ", b"ok "),
            (b"\x1b]0;title\x07$ ", b"$ "),
            (b"\x1b]133;A\x1b\\$ ", b"$ "),
            (b"\x1bP1$r0m\x1b\\x", b"x"),
            (b"\x1b(B\x1b[mlogin: ", b"login: "),
            (b"10%\r20%\r", b"20%"),
            (b"100%\r5%", b"5%"),
            (b"\x1b[1Girb> x", b"irb> x"),
            (b"a\x1b[4Gb", b"a  b"),
            (b"ab\x08\x08cd", b"cd"),
            ("ä\u{8}b".as_bytes(), b"b"),
            ("\u{e4}x\r\x1b[Cy".as_bytes(), "äy".as_bytes()),
            (b"# \r\x1b[2Csleep \r\x1b[8C1.0;\r\x1b[12C", b"# sleep 1.0;"),
            (b"abc\x1b[2D\x1b[P", b"ac"),
            (b"ac\x1b[D\x1b[@b", b"abc"),
            (b"abc\x1b[2D\x1b[K", b"a"),
            (b"abc\x1b[2Kd", b"d"),
            (b"\x1b]8;;http://x\x1b[31mred", b"red"),
            (b"a\x07b\x00c\td", b"abc\td"),
            (b"ab\x1b[\r1Cc", b"ac"),
            (b"ab\x1b[1;2Cc\x1b[?2Dd", b"abcd"),
            (b"a\x1bPx\x07y\x1b\\b", b"ab"),
        ] {
            let shown = String::from_utf8_lossy(raw);
            let read = plain_text(raw);
            assert_eq!(
                String::from_utf8_lossy(&read),
                String::from_utf8_lossy(text),
                "{shown:?}"
            );
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_taken(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let text = plain_text(&bytes);
            prop_assert!(text.len() <= (bytes.len() + 1) * usize::from(CELLS_MAX));
        }

        #[test]
        fn any_sequences_are_taken(text in "[a-c\u{e9}\x1b\\[\\]0-9;GCDPK@J\r\u{8}]{0,60}") {
            let _read = plain_text(text.as_bytes());
        }
    }
}
