//! The input of an excerpt: lines, and the ranges between them that were not read.

use std::collections::HashMap;

use super::cost::group_thousands;
use super::row::OutputRow;

/// Lines that were not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HiddenLines {
    /// Number of lines.
    pub lines: u64,
    /// Number of bytes, where they could be counted.
    pub bytes: Option<u64>,
    /// Offset of the first line.
    pub offset: u64,
    /// Whether they are of standard error.
    pub is_stderr: bool,
}

/// A line, or a range of lines that were not read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExcerptPiece {
    /// A line.
    Row(OutputRow),
    /// The hidden lines between two lines.
    Hidden(HiddenLines),
}

/// The input of an excerpt, in order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ExcerptInput {
    /// Lines, and the hidden ranges between them.
    pub pieces: Vec<ExcerptPiece>,
    /// Number of hidden failure lines by their [`line_shape`](super::failure_lines::line_shape).
    pub similar: HashMap<u64, u64>,
}

/// Lines omitted from an excerpt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OmittedLines {
    /// Number of lines.
    pub lines: u64,
    /// Their bytes as the command printed them, where they could be counted.
    pub bytes: Option<u64>,
    /// Offset of the first one: the cursor to continue from.
    pub offset: u64,
}

impl ExcerptInput {
    /// From lines without hidden ranges.
    #[must_use]
    pub fn from_rows(rows: Vec<OutputRow>) -> Self {
        Self {
            pieces: rows.into_iter().map(ExcerptPiece::Row).collect(),
            similar: HashMap::new(),
        }
    }

    /// The lines, without the hidden ranges.
    pub fn rows(&self) -> impl Iterator<Item = &OutputRow> {
        self.pieces.iter().filter_map(ExcerptPiece::row)
    }

    /// The lines, mutably.
    pub fn rows_mut(&mut self) -> impl Iterator<Item = &mut OutputRow> {
        self.pieces.iter_mut().filter_map(|piece| match piece {
            ExcerptPiece::Row(row) => Some(row),
            ExcerptPiece::Hidden(_) => None,
        })
    }

    /// Whether there are hidden ranges.
    #[must_use]
    pub fn is_partial(&self) -> bool {
        self.pieces.iter().any(|piece| piece.row().is_none())
    }
}

impl ExcerptPiece {
    /// The line, if it is one.
    #[must_use]
    pub const fn row(&self) -> Option<&OutputRow> {
        match self {
            Self::Row(row) => Some(row),
            Self::Hidden(_) => None,
        }
    }

    /// Whether it is of standard error.
    pub(super) fn is_stderr(&self) -> bool {
        match self {
            Self::Row(row) => row.is_stderr(),
            Self::Hidden(hidden) => hidden.is_stderr,
        }
    }

    pub(super) fn offset(&self) -> u64 {
        self.omitted().offset
    }

    pub(super) fn bytes(&self) -> Option<u64> {
        self.omitted().bytes
    }

    /// Lines, bytes and offset, if it were omitted.
    pub(super) fn omitted(&self) -> OmittedLines {
        match self {
            Self::Row(row) => OmittedLines {
                lines: row.lines,
                bytes: Some(row.bytes),
                offset: row.offset,
            },
            Self::Hidden(hidden) => OmittedLines {
                lines: hidden.lines,
                bytes: hidden.bytes,
                offset: hidden.offset,
            },
        }
    }
}

impl OmittedLines {
    pub(super) fn merge(self, other: Self) -> Self {
        Self {
            lines: self.lines + other.lines,
            bytes: self.bytes.zip(other.bytes).map(|(a, b)| a + b),
            offset: self.offset.min(other.offset),
        }
    }

    /// The marker line shown instead.
    pub(super) fn marker(&self) -> String {
        let bytes = self.bytes.map_or_else(String::new, |bytes| {
            format!(" ({} bytes)", group_thousands(bytes))
        });
        let plural = if self.lines == 1 { "" } else { "s" };
        format!(
            "[… {} line{plural}{bytes} omitted; cursor {}.0 …]",
            group_thousands(self.lines),
            self.offset
        )
    }
}

/// The sum of everything in these pieces that is not shown.
pub(super) fn omitted_total(
    pieces: &[ExcerptPiece],
    shown: &[bool],
    filter: impl Fn(&ExcerptPiece) -> bool,
) -> Option<OmittedLines> {
    let omitted = pieces.iter().zip(shown);
    let omitted = omitted.filter(|(piece, shown)| !**shown && filter(piece));
    omitted
        .map(|(piece, _)| piece.omitted())
        .reduce(OmittedLines::merge)
}

/// The note after a line that represents similar omitted lines.
pub(super) fn similar_note(count: u64) -> String {
    format!(" [… {} more like this …]", group_thousands(count))
}
