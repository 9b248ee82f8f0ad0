//! What a program asks its terminal, found in what it prints.
//!
//! A terminal answers some sequences as if its person had typed: status, cursor position,
//! device attributes (ECMA-48 §8.3.35, DEC VT510 manual). Programs wait for that answer, some
//! of them long. Where no terminal of a person is attached, somebody has to give it; the shim
//! only tells that it was asked for.

use std::time::{Duration, Instant};

use crate::place::Question;

/// Bytes of the longest sequence that is a question: `ESC [ ? 6 n`.
const LONGEST_BYTES: usize = 5;
/// Questions told within [`WINDOW_MS`]; a program that asks more gets no answer to the rest.
const QUESTIONS_MAX: u32 = 32;
/// Until as many may be told again, in milliseconds.
const WINDOW_MS: u64 = 1_000;
const ESCAPE: u8 = 0x1b;

/// Looks for questions in a stream that comes in pieces.
#[derive(Debug, Default)]
pub(crate) struct Questions {
    /// A sequence that began in an earlier piece.
    begun: Vec<u8>,
    window: Option<Instant>,
    told: u32,
}

impl Questions {
    /// The questions that end in this piece, each with the number of its bytes up to and
    /// including the question.
    pub(crate) fn in_piece(&mut self, piece: &[u8], now: Instant) -> Vec<(Question, usize)> {
        let mut found = Vec::new();
        let mut at = 0;
        if !self.begun.is_empty() {
            at = self.go_on(piece, &mut found);
        }
        while let Some(escape) = memchr::memchr(ESCAPE, &piece[at..]) {
            let from = at + escape;
            let rest = &piece[from..];
            match sequence(rest) {
                Sequence::Question(question, len) => {
                    found.push((question, from + len));
                    at = from + len;
                }
                Sequence::Begun => {
                    self.begun = rest.to_vec();
                    break;
                }
                Sequence::Other => at = from + 1,
            }
        }
        self.allow(found, now)
    }

    /// Completes what an earlier piece began; how much of this one that took.
    fn go_on(&mut self, piece: &[u8], found: &mut Vec<(Question, usize)>) -> usize {
        let known = self.begun.len();
        let more = piece.len().min(LONGEST_BYTES - known);
        self.begun.extend_from_slice(&piece[..more]);
        match sequence(&self.begun) {
            Sequence::Question(question, len) => {
                self.begun.clear();
                found.push((question, len - known));
                len - known
            }
            Sequence::Begun => piece.len(),
            Sequence::Other => {
                // An escape among what was carried can only be its first byte: nothing else
                // begins a question within one.
                self.begun.clear();
                0
            }
        }
    }

    fn allow(&mut self, mut found: Vec<(Question, usize)>, now: Instant) -> Vec<(Question, usize)> {
        if found.is_empty() {
            return found;
        }
        let window = Duration::from_millis(WINDOW_MS);
        if self.window.is_none_or(|since| now >= since + window) {
            self.window = Some(now);
            self.told = 0;
        }
        let left = QUESTIONS_MAX.saturating_sub(self.told);
        found.truncate(usize::try_from(left).unwrap_or(usize::MAX));
        self.told += u32::try_from(found.len()).unwrap_or(left);
        found
    }
}

enum Sequence {
    /// A question of so many bytes.
    Question(Question, usize),
    /// The beginning of one.
    Begun,
    /// Something else.
    Other,
}

/// What begins with this escape.
fn sequence(bytes: &[u8]) -> Sequence {
    const QUESTIONS: [(&[u8], Question); 5] = [
        (b"\x1b[5n", Question::Status),
        (b"\x1b[6n", Question::Cursor),
        (b"\x1b[c", Question::Attributes),
        (b"\x1b[0c", Question::Attributes),
        (b"\x1bZ", Question::Attributes),
    ];
    for (spelling, question) in QUESTIONS {
        if bytes.starts_with(spelling) {
            return Sequence::Question(question, spelling.len());
        }
    }
    if QUESTIONS.iter().any(|(it, _)| it.starts_with(bytes)) {
        return Sequence::Begun;
    }
    Sequence::Other
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(pieces: &[&[u8]]) -> Vec<(Question, usize)> {
        let (mut questions, now) = (Questions::default(), Instant::now());
        let mut base = 0;
        let mut found = Vec::new();
        for piece in pieces {
            let told = questions.in_piece(piece, now);
            found.extend(told.into_iter().map(|(it, end)| (it, base + end)));
            base += piece.len();
        }
        found
    }

    #[test]
    fn questions_are_found_among_other_sequences() {
        let text = b"\x1b[31mred\x1b[6n\x1b[5n and \x1b[c\x1b[0c\x1bZ\x1b[10;5H\x1b[16n\x1b[2c";
        let found: Vec<Question> = all(&[text]).into_iter().map(|(it, _)| it).collect();
        let attributes = Question::Attributes;
        let told = [
            Question::Cursor,
            Question::Status,
            attributes,
            attributes,
            attributes,
        ];
        assert_eq!(found, told);
    }

    #[test]
    fn a_question_is_found_wherever_it_is_cut() {
        let text: &[u8] = b"ab\x1b\x1b[6ncd\x1b[\x1b[5n\x1b[";
        let whole = all(&[text]);
        assert_eq!(whole, [(Question::Cursor, 7), (Question::Status, 15)]);
        for one in 0..=text.len() {
            for two in one..=text.len() {
                let cut = [&text[..one], &text[one..two], &text[two..]];
                assert_eq!(all(&cut), whole, "{one} {two}");
            }
        }
    }

    #[test]
    fn a_flood_is_told_in_part() {
        let (mut questions, now) = (Questions::default(), Instant::now());
        let flood = b"\x1b[6n".repeat(1_000);
        assert_eq!(questions.in_piece(&flood, now).len(), 32);
        assert_eq!(questions.in_piece(&flood, now).len(), 0);
        let later = now + Duration::from_millis(WINDOW_MS);
        assert_eq!(questions.in_piece(&flood, later).len(), 32);
    }
}
