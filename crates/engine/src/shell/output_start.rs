//! Finds the beginning of a command's own output.

use std::ops::Range;

use ostler_journal::{ByteQuery, Journal};
use ostler_model::{Cursor, ShellKind};
use ostler_terminal::shell::{PREAMBLE_BYTES, preamble_len};

use crate::error::Error;

/// What precedes a range of output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OutputPrefix {
    /// The marker of a command's start.
    Mark,
    /// The end of bracketed paste, with which a line editor submits a line.
    LineEnd,
}

/// The length of the shell's own output at the beginning of a range: after the marker, the first
/// sequences of fish; without a marker, the end of the typed line.
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

/// The length of a line end: `\r` in bash, `\r\r\n` in zsh.
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
