//! Finds where a command's own output begins.

use std::ops::Range;

use ostler_journal::{ByteQuery, Journal};
use ostler_model::{Cursor, ShellKind};
use ostler_terminal::shell::{PREAMBLE_BYTES, preamble_len};

use crate::error::Error;

/// What stands before a range of output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OutputPrefix {
    /// The mark that a command begins.
    Mark,
    /// The end of bracketed paste, as a line editor gives a line away.
    LineEnd,
}

/// How many bytes of a range are the shell's own, at its beginning: behind the mark what fish
/// writes first, without one the end of the line that was typed.
pub(super) fn shell_prefix_len(
    journal: &Journal,
    kind: ShellKind,
    prefix: OutputPrefix,
    range: Range<u64>,
) -> Result<u64, Error> {
    if range.is_empty() || (prefix == OutputPrefix::Mark && kind != ShellKind::Fish) {
        return Ok(0);
    }
    let page = journal.read(&ByteQuery {
        until: Some(range.end),
        max_bytes: PREAMBLE_BYTES as u64,
        ..ByteQuery::starting_at(Cursor {
            offset: range.start,
            event: 0,
        })
    })?;
    let mut head = Vec::new();
    for chunk in &page.chunks {
        if chunk.offset == range.start + head.len() as u64 {
            head.extend_from_slice(&chunk.bytes);
        }
    }
    Ok(match prefix {
        OutputPrefix::Mark => preamble_len(kind, &head),
        OutputPrefix::LineEnd => line_end_len(&head),
    } as u64)
}

/// `\r` of bash, `\r\r\n` of zsh.
fn line_end_len(bytes: &[u8]) -> usize {
    let rest = bytes.strip_prefix(b"\r").unwrap_or(bytes);
    let rest = rest.strip_prefix(b"\r\n").unwrap_or(rest);
    bytes.len() - rest.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_ends_of_line_editors() {
        assert_eq!(line_end_len(b"\rbash: error\r\n"), 1);
        assert_eq!(line_end_len(b"\r\r\nzsh: error\r\n"), 3);
        assert_eq!(line_end_len(b"text"), 0);
        assert_eq!(line_end_len(b""), 0);
    }
}
