//! Finds terminal queries in a program's output.
//!
//! A terminal answers some sequences as if they had been typed: status, cursor position, device
//! attributes (ECMA-48, Device Status Report; DEC VT510 manual). Programs wait for that answer,
//! some of them long. Where no person's terminal is attached, the daemon has to give it; the shim
//! only reports the query.

use std::time::{Duration, Instant};

use ostler_backend::TerminalQuery;

/// Bytes of the longest query: `ESC [ ? 6 n`.
const LONGEST_BYTES: usize = 5;
/// The most queries reported within [`WINDOW_MS`]; a program that sends more gets no answer to the
/// rest.
const QUERIES_MAX: u32 = 32;
/// The length of the rate-limit window, in milliseconds.
const WINDOW_MS: u64 = 1_000;
const ESCAPE: u8 = 0x1b;

/// Scans a stream that arrives in pieces.
#[derive(Debug, Default)]
pub(crate) struct TerminalQueryScanner {
    /// A sequence that began in an earlier piece.
    partial: Vec<u8>,
    window: Option<Instant>,
    reported: u32,
}

impl TerminalQueryScanner {
    /// The queries that end in this piece, each with the number of its bytes up to and including
    /// the query.
    pub(crate) fn scan(&mut self, chunk: &[u8], now: Instant) -> Vec<(TerminalQuery, usize)> {
        let mut matches = Vec::new();
        let mut at = 0;
        if !self.partial.is_empty() {
            at = self.resume(chunk, &mut matches);
        }
        while let Some(escape) = memchr::memchr(ESCAPE, &chunk[at..]) {
            let from = at + escape;
            let rest = &chunk[from..];
            match match_sequence(rest) {
                EscapeMatch::Query(question, len) => {
                    matches.push((question, from + len));
                    at = from + len;
                }
                EscapeMatch::Partial => {
                    self.partial = rest.to_vec();
                    break;
                }
                EscapeMatch::Other => at = from + 1,
            }
        }
        self.rate_limit(matches, now)
    }

    /// Completes a sequence that began in an earlier piece; returns how many bytes of this one that
    /// took.
    fn resume(&mut self, chunk: &[u8], matches: &mut Vec<(TerminalQuery, usize)>) -> usize {
        let prior = self.partial.len();
        let more = chunk.len().min(LONGEST_BYTES - prior);
        self.partial.extend_from_slice(&chunk[..more]);
        match match_sequence(&self.partial) {
            EscapeMatch::Query(question, len) => {
                self.partial.clear();
                matches.push((question, len - prior));
                len - prior
            }
            EscapeMatch::Partial => chunk.len(),
            EscapeMatch::Other => {
                // An escape within a partial sequence can only be its first byte: no other one
                // begins a query within it.
                self.partial.clear();
                0
            }
        }
    }

    fn rate_limit(
        &mut self,
        mut found: Vec<(TerminalQuery, usize)>,
        now: Instant,
    ) -> Vec<(TerminalQuery, usize)> {
        if found.is_empty() {
            return found;
        }
        let window = Duration::from_millis(WINDOW_MS);
        if self.window.is_none_or(|since| now >= since + window) {
            self.window = Some(now);
            self.reported = 0;
        }
        let left = QUERIES_MAX.saturating_sub(self.reported);
        found.truncate(usize::try_from(left).unwrap_or(usize::MAX));
        self.reported += u32::try_from(found.len()).unwrap_or(left);
        found
    }
}

enum EscapeMatch {
    /// A query of this many bytes.
    Query(TerminalQuery, usize),
    /// The beginning of one.
    Partial,
    /// Any other sequence.
    Other,
}

/// Matches the sequence that begins with this escape.
fn match_sequence(bytes: &[u8]) -> EscapeMatch {
    const QUESTIONS: [(&[u8], TerminalQuery); 5] = [
        (b"\x1b[5n", TerminalQuery::Status),
        (b"\x1b[6n", TerminalQuery::Cursor),
        (b"\x1b[c", TerminalQuery::Attributes),
        (b"\x1b[0c", TerminalQuery::Attributes),
        (b"\x1bZ", TerminalQuery::Attributes),
    ];
    for (spelling, question) in QUESTIONS {
        if bytes.starts_with(spelling) {
            return EscapeMatch::Query(question, spelling.len());
        }
    }
    if QUESTIONS.iter().any(|(it, _)| it.starts_with(bytes)) {
        return EscapeMatch::Partial;
    }
    EscapeMatch::Other
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(pieces: &[&[u8]]) -> Vec<(TerminalQuery, usize)> {
        let (mut questions, now) = (TerminalQueryScanner::default(), Instant::now());
        let mut base = 0;
        let mut found = Vec::new();
        for piece in pieces {
            let actual = questions.scan(piece, now);
            found.extend(actual.into_iter().map(|(it, end)| (it, base + end)));
            base += piece.len();
        }
        found
    }

    #[test]
    fn questions_are_found_among_other_sequences() {
        let text = b"\x1b[31mred\x1b[6n\x1b[5n and \x1b[c\x1b[0c\x1bZ\x1b[10;5H\x1b[16n\x1b[2c";
        let found: Vec<TerminalQuery> = all(&[text]).into_iter().map(|(it, _)| it).collect();
        let attributes = TerminalQuery::Attributes;
        let expected = [
            TerminalQuery::Cursor,
            TerminalQuery::Status,
            attributes,
            attributes,
            attributes,
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_question_is_found_wherever_it_is_cut() {
        let text: &[u8] = b"ab\x1b\x1b[6ncd\x1b[\x1b[5n\x1b[";
        let whole = all(&[text]);
        assert_eq!(
            whole,
            [(TerminalQuery::Cursor, 7), (TerminalQuery::Status, 15)]
        );
        for one in 0..=text.len() {
            for two in one..=text.len() {
                let cut = [&text[..one], &text[one..two], &text[two..]];
                assert_eq!(all(&cut), whole, "{one} {two}");
            }
        }
    }

    #[test]
    fn a_flood_is_reported_in_part() {
        let (mut questions, now) = (TerminalQueryScanner::default(), Instant::now());
        let flood = b"\x1b[6n".repeat(1_000);
        assert_eq!(questions.scan(&flood, now).len(), 32);
        assert_eq!(questions.scan(&flood, now).len(), 0);
        let later = now + Duration::from_millis(WINDOW_MS);
        assert_eq!(questions.scan(&flood, later).len(), 32);
    }
}
