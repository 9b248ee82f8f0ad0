//! Splits bytes into lines of at most [`LINE_BYTES`]. Pure.

/// The longest line, in bytes without its terminator; a longer one is refused and skipped.
pub(crate) const LINE_BYTES: usize = 16 * 1024 * 1024;
/// Bytes kept of a line that is too long, to find its id.
const PREFIX_BYTES: usize = 4 * 1024;

/// A complete line, or one that is too long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum InputLine {
    Whole(Vec<u8>),
    /// The beginning of the line; the rest is skipped.
    TooLong(Vec<u8>),
}

/// The line being read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct InputSplitter {
    /// Its bytes so far.
    pub(crate) partial: Vec<u8>,
    /// Whether it was too long, and the rest of it is skipped.
    pub(crate) is_skipping: bool,
}

impl InputSplitter {
    /// Adds bytes; returns the lines that are complete or turned out too long, in order.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Vec<InputLine> {
        let mut lines = Vec::new();
        for piece in bytes.split_inclusive(|&byte| byte == b'\n') {
            let (text, ended) = match piece.strip_suffix(b"\n") {
                Some(text) => (text, true),
                None => (piece, false),
            };
            if self.is_skipping {
                self.is_skipping = !ended;
                continue;
            }
            if self.partial.len() + text.len() > LINE_BYTES {
                self.partial
                    .extend_from_slice(&text[..text.len().min(PREFIX_BYTES)]);
                self.partial.truncate(PREFIX_BYTES);
                lines.push(InputLine::TooLong(std::mem::take(&mut self.partial)));
                self.is_skipping = !ended;
                continue;
            }
            self.partial.extend_from_slice(text);
            if ended {
                lines.push(InputLine::Whole(std::mem::take(&mut self.partial)));
            }
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_the_same_however_they_are_cut() {
        let text = b"one\n\ntwo\nthree";
        for size in 1..=text.len() {
            let mut splitter = InputSplitter::default();
            let lines: Vec<InputLine> =
                text.chunks(size).flat_map(|it| splitter.push(it)).collect();
            let expected = [&b"one"[..], b"", b"two"].map(|it| InputLine::Whole(it.to_vec()));
            assert_eq!(lines, expected);
            assert_eq!(splitter.partial, b"three");
        }
    }

    #[test]
    fn a_line_that_is_too_long_is_reported_once_and_skipped_to_its_end() {
        let mut splitter = InputSplitter::default();
        let mut lines = splitter.push(b"{\"id\":1,");
        let chunk = vec![b'x'; 1024 * 1024];
        for _ in 0..40 {
            lines.extend(splitter.push(&chunk));
        }
        lines.extend(splitter.push(b"y\nnext\n"));
        assert_eq!(lines.len(), 2);
        assert!(matches!(&lines[0], InputLine::TooLong(it) if it.starts_with(b"{\"id\":1,x")));
        assert_eq!(lines[1], InputLine::Whole(b"next".to_vec()));
        let mut exact = InputSplitter::default();
        let line = vec![b'x'; LINE_BYTES];
        assert!(exact.push(&line).is_empty());
        assert_eq!(exact.push(b"\n"), [InputLine::Whole(line)]);
    }
}
