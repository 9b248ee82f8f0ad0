//! Input that was sent, as needed by a later wait for a pattern.

use std::fmt;

use super::terminal_line::plain_text;

/// The most lines of one input whose echo is recognized; of a longer input, the first ones.
const ECHO_LINES: usize = 256;
/// The most bytes of one input whose echo is recognized.
const ECHO_BYTES: usize = 64 * 1024;

/// The position of an input in the output, and its expected echo.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct SentInput {
    /// The end of the output when the input was sent.
    pub offset: u64,
    /// The lines that were ended by Enter, as an echo shows them. Never logged: they may be
    /// secrets.
    lines: Vec<Vec<u8>>,
}

impl SentInput {
    /// From its position and its lines.
    pub(crate) const fn new(offset: u64, lines: Vec<Vec<u8>>) -> Self {
        Self { offset, lines }
    }

    /// Splits typed bytes into lines; none where they contain keys other than Enter and Tab, whose
    /// echo depends on the program.
    pub(crate) fn lines_of(bytes: &[u8]) -> Vec<Vec<u8>> {
        let bytes = &bytes[..bytes.len().min(ECHO_BYTES)];
        let plain: Vec<u8> = without_paste_marks(bytes);
        let is_key = |byte: &u8| byte.is_ascii_control() && !b"\r\n\t".contains(byte);
        if plain.iter().any(is_key) {
            return Vec::new();
        }
        let ended = plain.split_inclusive(|byte| matches!(byte, b'\r' | b'\n'));
        let ended = ended.filter_map(|line| line.strip_suffix(b"\r").or(line.strip_suffix(b"\n")));
        ended.take(ECHO_LINES).map(plain_text).collect()
    }

    pub(crate) fn lines(&self) -> &[Vec<u8>] {
        &self.lines
    }
}

impl fmt::Debug for SentInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SentInput")
            .field("offset", &self.offset)
            .field("lines", &self.lines.len())
            .finish()
    }
}

/// Removes the marks of a bracketed paste.
fn without_paste_marks(bytes: &[u8]) -> Vec<u8> {
    const BEGIN: &[u8] = b"\x1b[200~";
    const END: &[u8] = b"\x1b[201~";
    let mut plain = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((first, behind)) = rest.split_first() {
        if let Some(inner) = rest.strip_prefix(BEGIN).or_else(|| rest.strip_prefix(END)) {
            rest = inner;
        } else {
            plain.push(*first);
            rest = behind;
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_those_that_enter_ended() {
        for (bytes, lines) in [
            (&b"a\r"[..], &[&b"a"[..]][..]),
            (b"a\nb", &[b"a"]),
            (b"a", &[]),
            (b"\r", &[b""]),
            (b"\x1b[200~a\rb\x1b[201~\r", &[b"a", b"b"]),
            (b"a\tb \r", &[b"a\tb "]),
            (b"\x03", &[]),
            (b"\x1b[Aa\r", &[]),
        ] {
            assert_eq!(SentInput::lines_of(bytes), lines, "{bytes:?}");
        }
    }

    #[test]
    fn what_was_typed_is_not_in_debug_output() {
        let input = SentInput::new(7, vec![b"hunter2".to_vec()]);
        assert!(!format!("{input:?}").contains("hunter2"));
    }
}
