//! Questions to a journal, and its answers.

use std::time::Duration;

use ostler_model::{Cursor, StreamName, Timestamp};
use serde::{Deserialize, Serialize};

use crate::pattern::Pattern;

/// Bytes a [`ByteQuery`] returns unless it says otherwise.
pub const PAGE_BYTES: u64 = 1024 * 1024;
/// Lines a [`LineQuery`] returns unless it says otherwise.
pub const PAGE_LINES: u64 = 10_000;
/// Bytes of one line a [`LineQuery`] returns unless it says otherwise.
pub const LINE_BYTES: u64 = 64 * 1024;
/// Time that searching for a pattern may take in all unless the query says otherwise, in milliseconds.
pub const PATTERN_BUDGET_MS: u64 = 10_000;
/// The same for a pattern with look-around or back-references, in milliseconds.
pub const BACKTRACKING_BUDGET_MS: u64 = 2_000;

/// Which streams are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct StreamSet(u8);

/// Every stream there is, in the order of its code on disk.
pub(crate) const STREAMS: [StreamName; 4] = [
    StreamName::Stdout,
    StreamName::Stderr,
    StreamName::Pty,
    StreamName::Stdin,
];

/// A stream's code on disk, from 0; also its place in arrays of one entry per stream.
pub(crate) const fn stream_code(stream: StreamName) -> u8 {
    match stream {
        StreamName::Stdout => 0,
        StreamName::Stderr => 1,
        StreamName::Pty => 2,
        StreamName::Stdin => 3,
    }
}

impl StreamSet {
    /// Everything, audited input included.
    pub const ALL: Self = Self(0b1111);
    /// What the command printed: stdout, stderr, terminal.
    pub const OUTPUT: Self = Self(0b0111);
    /// Nothing.
    pub const NONE: Self = Self(0);

    /// One stream.
    #[must_use]
    pub const fn only(stream: StreamName) -> Self {
        Self(1 << stream_code(stream))
    }

    /// This set and one more stream.
    #[must_use]
    pub const fn with(self, stream: StreamName) -> Self {
        Self(self.0 | Self::only(stream).0)
    }

    /// Whether `stream` is meant.
    #[must_use]
    pub const fn contains(self, stream: StreamName) -> bool {
        self.0 & Self::only(stream).0 != 0
    }

    /// The streams meant.
    pub fn iter(self) -> impl Iterator<Item = StreamName> {
        STREAMS
            .into_iter()
            .filter(move |&stream| self.contains(stream))
    }
}

impl Default for StreamSet {
    fn default() -> Self {
        Self::OUTPUT
    }
}

impl FromIterator<StreamName> for StreamSet {
    fn from_iter<I: IntoIterator<Item = StreamName>>(streams: I) -> Self {
        streams.into_iter().fold(Self::NONE, Self::with)
    }
}

/// Asks for raw bytes in arrival order.
#[derive(Debug, Clone)]
pub struct ByteQuery {
    /// Where to begin; below the oldest byte kept the answer says so in its gap.
    pub from: Cursor,
    /// Where to end, exclusive; none is the end of what is there.
    pub until: Option<u64>,
    /// Which streams.
    pub streams: StreamSet,
    /// The most bytes to return; at least one byte is returned where there is one.
    pub max_bytes: u64,
}

impl ByteQuery {
    /// Everything the command printed from `from` on, in pages of [`PAGE_BYTES`].
    #[must_use]
    pub const fn from(from: Cursor) -> Self {
        Self {
            from,
            until: None,
            streams: StreamSet::OUTPUT,
            max_bytes: PAGE_BYTES,
        }
    }
}

/// Bytes of one stream that arrived together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// When they were read from the command.
    pub at: Timestamp,
    /// Where they came from.
    pub stream: StreamName,
    /// The position of the first one.
    pub offset: u64,
    /// The bytes.
    pub bytes: Vec<u8>,
}

/// Bytes that were there and are gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    /// The first byte gone.
    pub from: u64,
    /// The first byte after the gap.
    pub to: u64,
}

/// Bytes that [`Journal::clear`](crate::Journal::clear) or retention took away.
pub type TrimmedRange = Gap;

/// The answer to a [`ByteQuery`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BytePage {
    /// Chunks of the streams asked for, in arrival order, none of them empty.
    pub chunks: Vec<Chunk>,
    /// Where to go on.
    pub next: Cursor,
    /// Bytes that are gone between the place asked for and the first chunk. A page never
    /// holds a gap between its chunks: it ends before it.
    pub gap: Option<Gap>,
    /// Whether there are more bytes at `next` now.
    pub more: bool,
    /// Where the files are damaged; nothing at or after this offset can be read.
    pub damaged: Option<u64>,
}

/// What `grep` returns of a line that matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GrepMode {
    /// The whole line.
    #[default]
    Line,
    /// Only what matched, one [`JournalLine`] for each match.
    Content,
}

/// What becomes of the last line of a stream when it has no newline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Unfinished {
    /// It is left out until it ends: right while the execution runs.
    #[default]
    Hide,
    /// It is shown, and comes again: a prompt, a progress bar.
    Preview,
    /// It is given out once, for good: right when the execution has finished.
    Final,
}

/// Asks for lines.
///
/// The order of the conditions: position and time choose lines, streams and grep filter them,
/// `head` keeps the first of these, `tail` the last of those; the page's budgets then cut from
/// the back, and `next` goes on there.
#[derive(Debug, Clone)]
pub struct LineQuery {
    /// Lines that end at or after this position; none is the oldest kept.
    pub from: Option<Cursor>,
    /// Lines that end before this offset.
    pub until_cursor: Option<Cursor>,
    /// Lines that begin at or after this time.
    pub since: Option<Timestamp>,
    /// Lines that begin at or before this time.
    pub until: Option<Timestamp>,
    /// Which streams.
    pub streams: StreamSet,
    /// Lines with a match.
    pub grep: Option<Pattern>,
    /// What to return of them.
    pub grep_mode: GrepMode,
    /// Only the first so many.
    pub head: Option<u64>,
    /// Only the last so many.
    pub tail: Option<u64>,
    /// What becomes of a last line without a newline.
    pub unfinished: Unfinished,
    /// Whether the lines beyond the budgets are counted; otherwise `omitted_lines` stays 0
    /// and `more` alone tells of them.
    pub count_omitted: bool,
    /// The most lines (or matches) to return.
    pub max_lines: u64,
    /// The most bytes to return; one line is always returned where there is one.
    pub max_bytes: u64,
    /// The most bytes of one line to return.
    pub max_line_bytes: u64,
    /// Which bytes of a line that has more: those around its first match of `grep`, or its
    /// first ones.
    pub around_match: bool,
    /// Time that searching for the pattern may take in all; none: [`Pattern::budget`].
    pub budget: Option<Duration>,
}

impl Default for LineQuery {
    fn default() -> Self {
        Self {
            from: None,
            until_cursor: None,
            since: None,
            until: None,
            streams: StreamSet::OUTPUT,
            grep: None,
            grep_mode: GrepMode::Line,
            head: None,
            tail: None,
            unfinished: Unfinished::Hide,
            count_omitted: true,
            max_lines: PAGE_LINES,
            max_bytes: PAGE_BYTES,
            max_line_bytes: LINE_BYTES,
            around_match: false,
            budget: None,
        }
    }
}

/// One line of one stream, or one match in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalLine {
    /// When its first byte was read from the command.
    pub at: Timestamp,
    /// Its stream.
    pub stream: StreamName,
    /// The position of its first byte.
    pub offset: u64,
    /// Its number within its stream, from 1.
    pub number: u64,
    /// Its bytes without the newline.
    pub bytes: Vec<u8>,
    /// Whether it ended with a newline.
    pub terminated: bool,
    /// Bytes of this line that were not returned.
    pub clipped: u64,
    /// Those of them that stand before `bytes`; 0 unless [`LineQuery::around_match`].
    pub skipped: u64,
}

/// The answer to a [`LineQuery`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinePage {
    /// Lines in the order of their first bytes.
    pub lines: Vec<JournalLine>,
    /// Where to go on.
    pub next: Cursor,
    /// Bytes that are gone between the place asked for and the oldest kept after it.
    pub gap: Option<Gap>,
    /// Lines that match but are beyond the budgets.
    pub omitted_lines: u64,
    /// Whether there are such lines.
    pub more: bool,
    /// Where the files are damaged; nothing at or after this offset can be read.
    pub damaged: Option<u64>,
}
