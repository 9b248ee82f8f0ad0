//! Values that must never reach the journal: each occurrence in output is replaced before it
//! is appended, also where it is split over reads.

use aho_corasick::{AhoCorasick, AhoCorasickKind, Input, MatchKind};

use crate::secret_form::secret_forms;

/// The replacement of a secret in the journal.
pub const MASK: &[u8] = b"[redacted]";
/// How long output that may be the beginning of a secret is held back, in milliseconds.
pub const HOLD_BACK_MS: u64 = 5;
/// Beginnings of secrets up to this long are not held back for longer, in bytes.
pub const RELEASE_MAX_BYTES: usize = 3;

/// The secret values of one attempt, in every form in which programs print them.
#[derive(Debug)]
pub struct SecretFinder {
    automaton: AhoCorasick,
    /// In order, each with its place among those that were given.
    needles: Vec<(Vec<u8>, usize)>,
    /// The bytes that needles begin with.
    is_first_byte: [bool; 256],
    /// The length of the longest needle.
    longest: usize,
}

impl SecretFinder {
    /// None where there is nothing to hide; empty values hide nothing.
    pub fn new<'a>(values: impl IntoIterator<Item = &'a [u8]>) -> Option<Self> {
        let forms = values.into_iter().flat_map(secret_forms);
        Self::from_needles(forms.map(|(_, bytes)| bytes))
    }

    /// Finds exactly these, of which equal ones are the first; none where there is none.
    pub fn from_needles(needles: impl IntoIterator<Item = Vec<u8>>) -> Option<Self> {
        let mut needles: Vec<(Vec<u8>, usize)> = needles.into_iter().zip(0..).collect();
        needles.retain(|(needle, _)| !needle.is_empty());
        needles.sort_unstable();
        needles.dedup_by(|later, first| later.0 == first.0);
        let longest = needles.iter().map(|(needle, _)| needle.len()).max()?;
        let mut is_first_byte = [false; 256];
        for (needle, _) in &needles {
            is_first_byte[usize::from(needle[0])] = true;
        }
        let automaton = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            // The others take more memory than the secrets are worth.
            .kind(Some(AhoCorasickKind::ContiguousNFA))
            .build(needles.iter().map(|(needle, _)| needle))
            .expect("secrets have less than 2 GiB");
        Some(Self {
            automaton,
            needles,
            is_first_byte,
            longest,
        })
    }

    /// Every occurrence from left to right, the longest of those that begin at one place: its start,
    /// its end, and the place of what was found among the needles that were given.
    pub fn matches<'a>(
        &'a self,
        bytes: &'a [u8],
    ) -> impl Iterator<Item = (usize, usize, usize)> + 'a {
        self.automaton.find_iter(bytes).map(|found| {
            let (_, place) = self.needles[found.pattern().as_usize()];
            (found.start(), found.end(), place)
        })
    }

    /// The bytes with the mask in place of every occurrence.
    #[must_use]
    pub fn masked(&self, bytes: &[u8]) -> Vec<u8> {
        let mut redactor = Redactor::default();
        let mut masked = redactor.push(self, bytes).to_vec();
        masked.extend_from_slice(redactor.flush(self));
        masked
    }

    /// The leftmost occurrence at or after `from`, the longest of those; its start and end.
    fn find(&self, bytes: &[u8], from: usize) -> Option<(usize, usize)> {
        let found = self.automaton.find(Input::new(bytes).range(from..))?;
        Some((found.start(), found.end()))
    }

    /// The start of a tail that may become a secret; the length where there is none.
    fn open_tail(&self, bytes: &[u8], from: usize) -> usize {
        let reach = self.longest - 1;
        let start = from.max(bytes.len().saturating_sub(reach));
        let may_grow = |&at: &usize| {
            if !self.is_first_byte[usize::from(bytes[at])] {
                return false;
            }
            let tail = &bytes[at..];
            // Those that begin with it and are longer come first behind it.
            let place = self
                .needles
                .partition_point(|(needle, _)| needle.as_slice() <= tail);
            let next = self.needles.get(place);
            next.is_some_and(|(needle, _)| needle.starts_with(tail))
        };
        (start..bytes.len()).find(may_grow).unwrap_or(bytes.len())
    }
}

/// Redacts one stream's output on its way to the journal.
#[derive(Debug, Default)]
pub struct Redactor {
    /// What may yet become a secret, as it was read.
    pending: Vec<u8>,
    /// How many bytes of that were already released: should they become a secret after all, the
    /// rest is replaced.
    released: usize,
    clean: Vec<u8>,
}

impl Redactor {
    /// Adds bytes; returns what may be appended now.
    pub fn push(&mut self, secrets: &SecretFinder, bytes: &[u8]) -> &[u8] {
        self.pending.extend_from_slice(bytes);
        self.advance(secrets);
        &self.clean
    }

    /// Returns the retained bytes when their time is up: a few bytes are more likely a prompt than
    /// the beginning of a secret. Longer beginnings stay until more follows, or the stream ends.
    pub fn release_pending(&mut self, secrets: &SecretFinder) -> &[u8] {
        self.advance(secrets);
        if self.pending.len() <= RELEASE_MAX_BYTES {
            self.emit(self.pending.len());
            self.released = self.pending.len();
        }
        &self.clean
    }

    /// Returns the retained bytes at the end of the stream.
    pub fn flush(&mut self, secrets: &SecretFinder) -> &[u8] {
        self.clean.clear();
        let mut at = 0;
        while let Some((start, end)) = secrets.find(&self.pending, at) {
            self.emit_masked(at, start);
            at = end;
        }
        self.discard_before(at);
        self.emit(self.pending.len());
        self.discard_before(self.pending.len());
        &self.clean
    }

    /// Whether something is held back.
    pub fn has_pending(&self) -> bool {
        self.pending.len() > self.released
    }

    /// Whether the retained bytes are to be released after a while.
    pub fn needs_release(&self) -> bool {
        self.has_pending() && self.pending.len() <= RELEASE_MAX_BYTES
    }

    fn advance(&mut self, secrets: &SecretFinder) {
        self.clean.clear();
        let mut at = 0;
        let mut open = secrets.open_tail(&self.pending, 0);
        while let Some((start, end)) = secrets.find(&self.pending, at) {
            // A match that begins before the open tail cannot grow any more.
            if start >= open {
                break;
            }
            self.emit_masked(at, start);
            at = end;
            if at > open {
                open = secrets.open_tail(&self.pending, at);
            }
        }
        let from = at.max(self.released).min(open);
        self.clean.extend_from_slice(&self.pending[from..open]);
        self.discard_before(open);
    }

    /// Emits the bytes before a secret that were not released yet, and the mask.
    fn emit_masked(&mut self, at: usize, start: usize) {
        let from = at.max(self.released).min(start);
        self.clean.extend_from_slice(&self.pending[from..start]);
        self.clean.extend_from_slice(MASK);
    }

    /// Emits the retained bytes up to `end` that were not released yet.
    fn emit(&mut self, end: usize) {
        let from = self.released.min(end);
        self.clean.extend_from_slice(&self.pending[from..end]);
    }

    /// Discards the retained bytes before `from`.
    fn discard_before(&mut self, from: usize) {
        self.pending.drain(..from);
        self.released = self.released.saturating_sub(from);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The reference implementation: leftmost, longest, over the whole at once.
    fn naive(needles: &[Vec<u8>], bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        let mut at = 0;
        while at < bytes.len() {
            let here = needles
                .iter()
                .filter(|n| !n.is_empty() && bytes[at..].starts_with(n));
            if let Some(longest) = here.map(Vec::len).max() {
                out.extend_from_slice(MASK);
                at += longest;
            } else {
                out.push(bytes[at]);
                at += 1;
            }
        }
        out
    }

    proptest! {
        #[test]
        fn chunks_do_not_matter(
            needles in prop::collection::vec("[ab]{1,5}", 1..4),
            text in "[abc]{0,60}",
            cuts in prop::collection::vec(0..8_usize, 0..20),
        ) {
            let needles: Vec<Vec<u8>> = needles.into_iter().map(String::into_bytes).collect();
            let secrets = SecretFinder::new(needles.iter().map(Vec::as_slice)).expect("not empty");
            let mut redactor = Redactor::default();
            let mut out = Vec::new();
            let mut rest = text.as_bytes();
            for cut in cuts {
                let (chunk, after) = rest.split_at(cut.min(rest.len()));
                out.extend_from_slice(redactor.push(&secrets, chunk));
                rest = after;
            }
            out.extend_from_slice(redactor.push(&secrets, rest));
            out.extend_from_slice(redactor.flush(&secrets));
            prop_assert!(!redactor.has_pending());
            prop_assert_eq!(out, naive(&needles, text.as_bytes()));
        }
    }

    #[test]
    fn changed_forms_of_a_value_are_masked_in_any_pieces() {
        let key = "-----BEGIN KEY-----\nMIIEvQIBADAN\nq1w2e3r4\nxyz=\n-----END KEY-----\n";
        let secrets = SecretFinder::new([key.as_bytes()]).expect("not empty");
        for printed in [
            key.replace('\n', "\r\n"),
            key.replace('\n', " "),
            key.replace('\n', "\\n"),
            "<MIIEvQIBADAN>\n".to_owned(),
        ] {
            for size in [1, 2, 7, printed.len()] {
                let mut redactor = Redactor::default();
                let mut out = Vec::new();
                for piece in printed.as_bytes().chunks(size) {
                    out.extend_from_slice(redactor.push(&secrets, piece));
                }
                out.extend_from_slice(redactor.flush(&secrets));
                let out = String::from_utf8(out).expect("text");
                assert!(out.contains("[redacted]"), "{out}");
                assert!(!out.contains("MIIEvQ") && !out.contains("xyz"), "{out}");
                assert_eq!(secrets.masked(printed.as_bytes()), out.as_bytes());
            }
        }
    }

    #[test]
    fn much_output_with_many_matches_is_read_once() {
        let key = "A1b2C3d4E5f6G7h8".repeat(4).repeat(40);
        let key = key.as_bytes().chunks(64).collect::<Vec<_>>().join(&b'\n');
        let secrets = SecretFinder::new([&key[..], b"secret"]).expect("not empty");
        let printed = b"a secret ".repeat(100_000);
        let out = secrets.masked(&printed);
        assert_eq!(out.len(), b"a [redacted] ".len() * 100_000);
    }

    #[test]
    fn a_secret_in_slow_pieces_is_still_masked() {
        let secrets = SecretFinder::new([&b"hunter2-hunter2"[..]]).expect("not empty");
        for cut in 1..15 {
            let mut redactor = Redactor::default();
            let (first, second) = b"hunter2-hunter2".split_at(cut);
            let mut out = redactor.push(&secrets, first).to_vec();
            out.extend_from_slice(redactor.release_pending(&secrets));
            out.extend_from_slice(redactor.release_pending(&secrets));
            out.extend_from_slice(redactor.push(&secrets, second));
            out.extend_from_slice(redactor.flush(&secrets));
            let unmasked = if cut <= RELEASE_MAX_BYTES { cut } else { 0 };
            let expected = [&first[..unmasked], MASK].concat();
            assert_eq!(out, expected, "cut at {cut}");
        }
    }

    #[test]
    fn released_bytes_are_emitted_once() {
        let secrets = SecretFinder::new([&b"passphrase"[..]]).expect("not empty");
        let mut redactor = Redactor::default();
        let mut out = redactor.push(&secrets, b"give p").to_vec();
        out.extend_from_slice(redactor.release_pending(&secrets));
        assert_eq!(out, b"give p");
        assert!(!redactor.has_pending());
        out.extend_from_slice(redactor.push(&secrets, b"a"));
        out.extend_from_slice(redactor.release_pending(&secrets));
        out.extend_from_slice(redactor.push(&secrets, b"x pass"));
        assert!(redactor.has_pending() && !redactor.needs_release());
        out.extend_from_slice(redactor.release_pending(&secrets));
        assert_eq!(out, b"give pax ");
        out.extend_from_slice(redactor.flush(&secrets));
        assert_eq!(out, b"give pax pass");
        assert!(!redactor.has_pending());
    }

    #[test]
    fn nothing_to_hide_is_none() {
        assert!(SecretFinder::new([]).is_none());
        assert!(SecretFinder::new([&b""[..]]).is_none());
    }
}
