//! Queries by line number, and their results.

use ostler_model::Timestamp;

use crate::pattern::Pattern;
use crate::query::{Gap, JournalLine, LINE_BYTES, PAGE_BYTES, PAGE_LINES, StreamSet};

/// Where a page of lines begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinePosition {
    /// At the line of this number, or the first one kept after it.
    Number(u64),
    /// At the first line that ends in what was read at or after this time.
    Time(Timestamp),
    /// At the first line that ends after this offset.
    Offset(u64),
    /// So that this many lines are left.
    Last(u64),
}

/// A query for lines by their numbers.
#[derive(Debug, Clone)]
pub struct NumberedQuery {
    /// Where to begin.
    pub from: LinePosition,
    /// The streams to read. Numbers count those of all output streams.
    pub streams: StreamSet,
    /// The most lines to return; those that have not ended are returned together, at most one of
    /// each stream.
    pub max_lines: u64,
    /// The most bytes to return; one line is always returned where there is one.
    pub max_bytes: u64,
    /// The most bytes of one line to return.
    pub max_line_bytes: u64,
}

impl NumberedQuery {
    /// The lines of all output streams from a position on.
    #[must_use]
    pub const fn starting_at(from: LinePosition) -> Self {
        Self {
            from,
            streams: StreamSet::OUTPUT,
            max_lines: PAGE_LINES,
            max_bytes: PAGE_BYTES,
            max_line_bytes: LINE_BYTES,
        }
    }
}

/// A line with its number among those of all output streams.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NumberedLine {
    /// The number, from 1. The parts of a line that lost its middle share one.
    pub number: u64,
    /// The line itself.
    pub line: JournalLine,
}

/// The result of a [`NumberedQuery`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NumberedPage {
    /// The number of the oldest line kept, as far as it is known; one after `ended` where none is.
    pub first_kept: u64,
    /// How many lines have ended so far, those that are gone included.
    pub ended: u64,
    /// Lines in the order of their numbers; the last ones may not have ended.
    pub lines: Vec<NumberedLine>,
    /// Ranges that are gone between these lines.
    pub gaps: Vec<Gap>,
    /// The number to continue with.
    pub next: u64,
    /// Whether there is more now.
    pub more: bool,
    /// Where the files are damaged; nothing at or after this offset can be read.
    pub damaged: Option<u64>,
}

/// Which of the matching lines a search returns. Those that have not ended are returned together, at
/// most one of each stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SearchedLines {
    /// The first ones of the range, at most this many, at least one.
    First(u64),
    /// The last ones of the range, at most this many, at least one.
    Last(u64),
    /// None: they are counted, from the beginning of the range.
    Count,
}

/// A search for lines with a match.
#[derive(Debug, Clone)]
pub struct LineSearch {
    /// The pattern.
    pub pattern: Pattern,
    /// The number of the line at which the search begins.
    pub from: u64,
    /// What to return, and in which direction to search: for the last ones backward.
    pub lines: SearchedLines,
    /// The streams to search.
    pub streams: StreamSet,
    /// The bytes of output to search; more where the first line is longer.
    pub max_bytes: u64,
    /// The most bytes of one line to return, those around its first match.
    pub max_line_bytes: u64,
}

/// The result of a [`LineSearch`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchPage {
    /// The number of the oldest line kept, as far as it is known.
    pub first_kept: u64,
    /// How many lines have ended so far.
    pub ended: u64,
    /// Matching lines in the order of their numbers.
    pub matches: Vec<NumberedLine>,
    /// How many lines matched in the part that was searched.
    pub count: u64,
    /// The number of the line to continue with; none where all was searched.
    pub next: Option<u64>,
    /// How many bytes were searched.
    pub searched_bytes: u64,
    /// Where the files are damaged; nothing from this offset to the end of the range was searched.
    pub damaged: Option<u64>,
}

/// What was printed when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputShape {
    /// The number of the oldest line kept, as far as it is known.
    pub first_kept: u64,
    /// How many lines have ended so far.
    pub ended: u64,
    /// When the oldest and the newest output kept was read; none where there is none.
    pub times: Option<(Timestamp, Timestamp)>,
    /// The bytes between the oldest and the newest kept, gaps included.
    pub bytes: u64,
    /// Slices of that time of equal length; none where there is no output.
    pub buckets: Vec<ShapeBucket>,
}

/// What was printed in one slice of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ShapeBucket {
    /// Lines that ended in what was read in it.
    pub lines: u64,
    /// Those of them on stderr.
    pub stderr_lines: u64,
}

impl OutputShape {
    /// The slice that holds this time; none where there is no output.
    pub fn bucket_at(&self, at: Timestamp) -> Option<usize> {
        let (first, last) = self.times?;
        let (first, last) = (first.as_nanosecond(), last.as_nanosecond());
        let passed = at.as_nanosecond().clamp(first, last) - first;
        let place = passed * self.buckets.len() as i128 / (last - first + 1);
        usize::try_from(place).ok()
    }
}
