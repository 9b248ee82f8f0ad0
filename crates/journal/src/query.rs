//! Queries to a journal, and their results.

use std::time::Duration;

use ostler_model::{Cursor, StreamName, Timestamp};
use serde::{Deserialize, Serialize};

use crate::pattern::Pattern;

/// The default of [`ByteQuery::max_bytes`].
pub const PAGE_BYTES: u64 = 1024 * 1024;
/// The default of [`LineQuery::max_lines`].
pub const PAGE_LINES: u64 = 10_000;
/// The default of [`LineQuery::max_line_bytes`].
pub const LINE_BYTES: u64 = 64 * 1024;

/// A set of streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct StreamSet(u8);

/// All streams, in the order of their codes on disk.
pub(crate) const STREAMS: [StreamName; 4] = [
    StreamName::Stdout,
    StreamName::Stderr,
    StreamName::Pty,
    StreamName::Stdin,
];

/// The code of a stream on disk, from 0; also its index in arrays with one entry for each stream.
pub(crate) const fn stream_code(stream: StreamName) -> u8 {
    match stream {
        StreamName::Stdout => 0,
        StreamName::Stderr => 1,
        StreamName::Pty => 2,
        StreamName::Stdin => 3,
    }
}

impl StreamSet {
    /// All streams, audited input included.
    pub const ALL: Self = Self(0b1111);
    /// The output of the command: stdout, stderr, terminal.
    pub const OUTPUT: Self = Self(0b0111);
    /// No stream.
    pub const NONE: Self = Self(0);

    /// The set of one stream.
    #[must_use]
    pub const fn only(stream: StreamName) -> Self {
        Self(1 << stream_code(stream))
    }

    /// This set and one more stream.
    #[must_use]
    pub const fn with(self, stream: StreamName) -> Self {
        Self(self.0 | Self::only(stream).0)
    }

    /// Whether `stream` is in the set.
    #[must_use]
    pub const fn contains(self, stream: StreamName) -> bool {
        self.0 & Self::only(stream).0 != 0
    }

    /// The streams in the set.
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

/// A query for raw bytes in arrival order.
#[derive(Debug, Clone)]
pub struct ByteQuery {
    /// Where to begin; if that is below the oldest byte kept, the result has a gap.
    pub from: Cursor,
    /// Where to end, exclusive; none is the end of the journal.
    pub until: Option<u64>,
    /// The streams to read.
    pub streams: StreamSet,
    /// The most bytes to return; at least one byte is returned where there is one.
    pub max_bytes: u64,
    /// Whether bytes of one stream that follow each other are one chunk, with the time of the first
    /// ones: a line that was typed is thousands of chunks otherwise.
    pub joined: bool,
}

impl ByteQuery {
    /// A query for all output from `starting_at` on, in pages of [`PAGE_BYTES`].
    #[must_use]
    pub const fn starting_at(from: Cursor) -> Self {
        Self {
            from,
            until: None,
            streams: StreamSet::OUTPUT,
            max_bytes: PAGE_BYTES,
            joined: false,
        }
    }
}

/// Bytes of one stream that arrived together, or, where that was requested, one after the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// When they were read from the command; of several, the first ones.
    pub at: Timestamp,
    /// The stream they belong to.
    pub stream: StreamName,
    /// The offset of the first byte.
    pub offset: u64,
    /// The bytes.
    pub bytes: Vec<u8>,
}

/// A range of bytes that are gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    /// The first byte that is gone.
    pub from: u64,
    /// The first byte after the gap.
    pub to: u64,
}

/// The range that [`Journal::clear`](crate::Journal::clear) or retention dropped.
pub type TrimmedRange = Gap;

/// The result of a [`ByteQuery`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BytePage {
    /// Chunks of the requested streams, in arrival order, none of them empty.
    pub chunks: Vec<Chunk>,
    /// Where to continue.
    pub next: Cursor,
    /// Bytes that are gone between the requested position and the first chunk. A page never has a
    /// gap between its chunks: it ends before the gap.
    pub gap: Option<Gap>,
    /// Whether there are more bytes at `next` now.
    pub more: bool,
    /// Where the files are damaged; nothing at or after this offset can be read.
    pub damaged: Option<u64>,
}

/// What to return of a line that matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GrepMode {
    /// The whole line.
    #[default]
    Line,
    /// The match only, one [`JournalLine`] for each.
    Content,
}

/// How to treat the last line of a stream if it has no newline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum OpenLineMode {
    /// Leave it out until it ends: right while the execution runs.
    #[default]
    Hide,
    /// Return it, and again later: a prompt, a progress bar.
    Preview,
    /// Return it once, finally: right when the execution has finished.
    Final,
}

/// A query for lines.
///
/// The order of the conditions: position and time select lines, streams and grep filter them,
/// `head` keeps the first of these, `tail` the last of those; the budgets of the page then cut from
/// the end, and `next` continues there.
#[derive(Debug, Clone)]
pub struct LineQuery {
    /// Lines that end at or after this position; none is the oldest byte kept.
    pub from: Option<Cursor>,
    /// Lines that end before this offset.
    pub until_cursor: Option<Cursor>,
    /// Lines that begin at or after this time.
    pub since: Option<Timestamp>,
    /// Lines that begin at or before this time.
    pub until: Option<Timestamp>,
    /// The streams to read.
    pub streams: StreamSet,
    /// Lines with a match of this pattern.
    pub grep: Option<Pattern>,
    /// What to return of a matching line.
    pub grep_mode: GrepMode,
    /// Only the first lines, this many.
    pub head: Option<u64>,
    /// Only the last lines, this many.
    pub tail: Option<u64>,
    /// How to treat a last line without a newline.
    pub unfinished: OpenLineMode,
    /// Whether lines beyond the budgets are counted; otherwise `omitted_lines` stays 0 and only
    /// `more` reports them.
    pub count_omitted: bool,
    /// The most lines (or matches) to return.
    pub max_lines: u64,
    /// The most bytes to return; one line is always returned where there is one.
    pub max_bytes: u64,
    /// The most bytes of one line to return.
    pub max_line_bytes: u64,
    /// Which bytes of a longer line to return: those around its first match of `grep`, or the first
    /// ones.
    pub around_match: bool,
    /// The time budget for all pattern searches; none is [`Pattern::budget`].
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
            unfinished: OpenLineMode::Hide,
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
    /// The stream of the line.
    pub stream: StreamName,
    /// The offset of its first byte.
    pub offset: u64,
    /// Its number within its stream, from 1.
    pub number: u64,
    /// Its bytes without the newline.
    pub bytes: Vec<u8>,
    /// Whether it ends with a newline.
    pub terminated: bool,
    /// The number of its bytes that were not returned.
    pub clipped: u64,
    /// Those of them that are before `bytes`; 0 unless [`LineQuery::around_match`].
    pub skipped: u64,
}

/// The result of a [`LineQuery`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinePage {
    /// Lines in the order of their first bytes.
    pub lines: Vec<JournalLine>,
    /// Where to continue.
    pub next: Cursor,
    /// Bytes that are gone between the requested position and the oldest byte kept after it.
    pub gap: Option<Gap>,
    /// The number of matching lines beyond the budgets.
    pub omitted_lines: u64,
    /// Whether there are such lines.
    pub more: bool,
    /// Where the files are damaged; nothing at or after this offset can be read.
    pub damaged: Option<u64>,
}
