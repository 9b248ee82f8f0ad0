//! Values that must never reach the journal: each occurrence in output is replaced before it
//! is appended, also where it is split over reads.

use memchr::memmem::Finder;

/// The replacement of a secret in the journal.
pub const MASK: &[u8] = b"[redacted]";
/// How long output that may be the beginning of a secret is held back, in milliseconds.
pub const HOLD_BACK_MS: u64 = 5;
/// Beginnings of secrets up to this long are not held back for longer, in bytes.
pub const RELEASE_MAX_BYTES: usize = 3;

/// The secret values of one attempt.
#[derive(Debug)]
pub struct SecretFinder {
    finders: Vec<Finder<'static>>,
}

impl SecretFinder {
    /// None where there is nothing to hide; empty values hide nothing.
    pub fn new<'a>(values: impl IntoIterator<Item = &'a [u8]>) -> Option<Self> {
        let finders: Vec<_> = values
            .into_iter()
            .filter(|value| !value.is_empty())
            .map(|value| Finder::new(value).into_owned())
            .collect();
        (!finders.is_empty()).then_some(Self { finders })
    }

    /// The leftmost occurrence at or after `from`, the longest of those; its start and end.
    fn find(&self, bytes: &[u8], from: usize) -> Option<(usize, usize)> {
        let found = self.finders.iter().filter_map(|finder| {
            let start = from + finder.find(bytes.get(from..)?)?;
            Some((start, start + finder.needle().len()))
        });
        found.min_by_key(|&(start, end)| (start, usize::MAX - end))
    }

    /// The start of a tail that may become a secret; the length where there is none.
    fn open_tail(&self, bytes: &[u8], from: usize) -> usize {
        let longest = self
            .finders
            .iter()
            .map(|finder| finder.needle().len())
            .max();
        let reach = longest.unwrap_or(1) - 1;
        let start = from.max(bytes.len().saturating_sub(reach));
        let may_grow = |&at: &usize| {
            let tail = &bytes[at..];
            let mut needles = self.finders.iter().map(Finder::needle);
            needles.any(|needle| needle.len() > tail.len() && needle.starts_with(tail))
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
        let mut next = secrets.find(&self.pending, 0);
        loop {
            let open = secrets.open_tail(&self.pending, at);
            match next {
                // A match that begins before the open tail cannot grow any more.
                Some((start, end)) if start < open => {
                    self.emit_masked(at, start);
                    at = end;
                    next = secrets.find(&self.pending, at);
                }
                Some(_) | None => {
                    let from = at.max(self.released).min(open);
                    self.clean.extend_from_slice(&self.pending[from..open]);
                    return self.discard_before(open);
                }
            }
        }
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
