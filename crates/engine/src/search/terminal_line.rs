//! Output as it reads: applies escape sequences within their line, byte by byte, so that chunks may
//! have any size.

const ESC: u8 = 0x1b;
const BEL: u8 = 0x07;
const BACKSPACE: u8 = 0x08;
/// Cells that one sequence moves, deletes or inserts at most.
const CELLS_MAX: usize = 1_000;

/// Where in an escape sequence (ECMA-48) the output stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum LineParserState {
    #[default]
    Text,
    Escape,
    /// In a control sequence, with its first parameter; none where it has others, or a private
    /// marker.
    Control {
        number: Option<usize>,
    },
    /// In a string (OSC, DCS, SOS, PM, APC) up to BEL or ST.
    String,
    /// Behind an ESC in a string.
    StringEscape,
}

/// What a byte of output does to its line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineChange {
    /// A byte of text is written.
    Write(u8),
    /// The cursor goes to a column, counted from 0.
    Column(usize),
    /// The cursor goes right.
    Right(usize),
    /// The cursor goes left.
    Left(usize),
    /// What is behind the cursor is erased.
    EraseAfter,
    /// The line is erased, or the cursor goes to another one of the screen.
    Clear,
    /// Characters at the cursor are deleted.
    Delete(usize),
    /// Blanks are inserted at the cursor.
    Insert(usize),
    /// The line ends.
    End,
    Nothing,
}

/// Tells text from escape sequences.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct LineParser {
    state: LineParserState,
}

impl LineParser {
    /// Whether the next byte begins no sequence's rest.
    pub(super) fn is_in_text(self) -> bool {
        self.state == LineParserState::Text
    }

    /// Takes the next byte in.
    pub(super) fn feed(&mut self, byte: u8) -> LineChange {
        match (self.state, byte) {
            (LineParserState::Text, ESC) => self.transition(LineParserState::Escape),
            (
                LineParserState::Text | LineParserState::Escape | LineParserState::Control { .. },
                b'\n',
            ) => {
                // A sequence that was under way was broken off.
                self.state = LineParserState::Text;
                LineChange::End
            }
            (LineParserState::Text, b'\r') => LineChange::Column(0),
            (LineParserState::Text, BACKSPACE) => LineChange::Left(1),
            (LineParserState::Text, b'\t') => LineChange::Write(byte),
            (LineParserState::Text, 0..=0x1f | 0x7f) => LineChange::Nothing,
            (LineParserState::Text, _) => LineChange::Write(byte),
            (LineParserState::Escape, b'[') => {
                self.transition(LineParserState::Control { number: Some(0) })
            }
            (LineParserState::Escape, b']' | b'P' | b'X' | b'^' | b'_') => {
                self.transition(LineParserState::String)
            }
            (LineParserState::Escape, ESC | 0x20..=0x2f) => LineChange::Nothing,
            (LineParserState::Escape, _) => self.transition(LineParserState::Text),
            (LineParserState::Control { number }, _) => self.control(number, byte),
            (LineParserState::String, BEL) => self.transition(LineParserState::Text),
            (LineParserState::String, ESC) => self.transition(LineParserState::StringEscape),
            (LineParserState::String, _) => LineChange::Nothing,
            (LineParserState::StringEscape, b'\\') => self.transition(LineParserState::Text),
            // No ST: another sequence has begun.
            (LineParserState::StringEscape, _) => {
                self.state = LineParserState::Escape;
                self.feed(byte)
            }
        }
    }

    fn control(&mut self, number: Option<usize>, byte: u8) -> LineChange {
        match byte {
            0x40..=0x7e => {
                self.state = LineParserState::Text;
                control_change(number, byte)
            }
            ESC => self.transition(LineParserState::Escape),
            b'0'..=b'9' => {
                let digit = usize::from(byte - b'0');
                let number = number.map(|it| (it * 10 + digit).min(CELLS_MAX));
                self.transition(LineParserState::Control { number })
            }
            _ => self.transition(LineParserState::Control { number: None }),
        }
    }

    fn transition(&mut self, state: LineParserState) -> LineChange {
        self.state = state;
        LineChange::Nothing
    }
}

/// What a control sequence does; none of a number are several parameters, or a private one.
const fn control_change(number: Option<usize>, last: u8) -> LineChange {
    let (Some(number), count) = (number, number) else {
        return match last {
            b'H' | b'f' => LineChange::Clear,
            _ => LineChange::Nothing,
        };
    };
    let count = match count {
        None | Some(0) => 1,
        Some(count) => count,
    };
    match (last, number) {
        (b'G' | b'`', _) => LineChange::Column(count - 1),
        (b'C' | b'a', _) => LineChange::Right(count),
        (b'D', _) => LineChange::Left(count),
        (b'P', _) => LineChange::Delete(count),
        (b'@', _) => LineChange::Insert(count),
        (b'K' | b'J', 0) => LineChange::EraseAfter,
        (b'K' | b'J', 2) | (b'H' | b'f', _) => LineChange::Clear,
        _ => LineChange::Nothing,
    }
}

/// One line with its cursor. Every character counts as one cell.
#[derive(Debug, Clone, Default)]
pub(super) struct LineBuffer {
    text: Vec<u8>,
    /// Where in `text` the next byte is written.
    cursor: usize,
    /// Whether the cursor was put to the first column and has not moved: what is written now
    /// takes the place of all that stands there.
    is_home: bool,
}

impl LineBuffer {
    /// A line that reads so, its cursor at its end.
    pub(super) const fn from_text(text: Vec<u8>) -> Self {
        Self {
            cursor: text.len(),
            text,
            is_home: false,
        }
    }

    /// As it reads.
    pub(super) fn text(&self) -> &[u8] {
        &self.text
    }

    /// Whether a change takes away some of what stands there.
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

    /// Carries a change out.
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

    /// Forgets all but so many bytes at the end.
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

/// Where the character at a place ends.
fn char_end(text: &[u8], index: usize) -> usize {
    let rest = text.get(index + 1..).unwrap_or_default();
    let more = rest.iter().take_while(|byte| **byte & 0xc0 == 0x80);
    (index + 1 + more.count()).min(text.len())
}

/// Where the character before a place begins.
fn char_start(text: &[u8], index: usize) -> usize {
    let head = text.get(..index).unwrap_or(text);
    head.iter()
        .rposition(|byte| byte & 0xc0 != 0x80)
        .unwrap_or(0)
}

/// A line's bytes as it reads at its end.
pub(crate) fn plain_text(line: &[u8]) -> Vec<u8> {
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
            prop_assert!(text.len() <= (bytes.len() + 1) * CELLS_MAX);
        }

        #[test]
        fn any_sequences_are_taken(text in "[a-c\u{e9}\x1b\\[\\]0-9;GCDPK@J\r\u{8}]{0,60}") {
            let _read = plain_text(text.as_bytes());
        }
    }
}
