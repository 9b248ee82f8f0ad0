//! Output by line number, for viewers of logs.

use ostler_model::{StreamName, Timestamp};
use serde::{Deserialize, Serialize};

use super::page::{GapBody, LineBody};

/// A line with its number among those of all output streams.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NumberedLineBody {
    /// Its number: how many lines of all output streams have ended with it, from 1. It never
    /// changes; that of a line that is not terminated yet may.
    pub line: u64,
    /// The line.
    #[serde(flatten)]
    pub content: LineBody,
}

/// Lines from a number, a time or the end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NumberedPageBody {
    /// The number of the oldest line that is kept; one more than `ended_lines` where none is.
    pub first_line: u64,
    /// How many lines have ended so far, those that are gone included.
    pub ended_lines: u64,
    /// The lines, in the order of their numbers; last, those that are not terminated yet.
    pub lines: Vec<NumberedLineBody>,
    /// Output that is gone between these lines.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gaps: Vec<GapBody>,
    /// Output that is gone after the last line, where it has ended and nothing follows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gap_after: Option<GapBody>,
    /// The offset from which on the files are damaged, so that later lines cannot be read; absent where they are not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub damaged_from: Option<u64>,
    /// The number to continue with.
    pub next_line: u64,
    /// Whether there is more now.
    pub more: bool,
    /// Whether the execution has ended, so that nothing is added any more.
    pub finished: bool,
}

/// The lines of one part of the output that match.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LineSearchBody {
    /// The number of the oldest line that is kept.
    pub first_line: u64,
    /// How many lines have ended so far.
    pub ended_lines: u64,
    /// Lines with a match, in the order of their numbers, each cut to what is around its first
    /// match.
    pub matches: Vec<LineMatchPartBody>,
    /// How many lines of this part match, also where only they are counted.
    pub count: u64,
    /// The line to continue with; absent where all was searched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_line: Option<u64>,
    /// The offset from which on the files are damaged, so that what follows was not searched; absent where they are not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub damaged_from: Option<u64>,
    /// How many bytes of output were searched.
    pub searched_bytes: u64,
}

/// A line with a match.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LineMatchPartBody {
    /// Its number.
    pub line: u64,
    /// When its first byte was read.
    pub at: Timestamp,
    /// The stream it was read from.
    pub stream: StreamName,
    /// The part of the line around the first match, decoded.
    pub text: String,
    /// Bytes of the line before `text`.
    #[serde(default, skip_serializing_if = "super::page::is_zero")]
    pub skipped_bytes: u64,
    /// Bytes of the line that are not in `text`, those before it included.
    #[serde(default, skip_serializing_if = "super::page::is_zero")]
    pub clipped_bytes: u64,
}

/// Lines of one part of the output that state a failure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FailureLinesBody {
    /// The number of the oldest line that is kept.
    pub first_line: u64,
    /// How many lines have ended so far.
    pub ended_lines: u64,
    /// The lines, in the order of their numbers.
    pub failures: Vec<FailureLineBody>,
    /// The line to continue with; absent where all was searched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_line: Option<u64>,
}

/// A line that states a failure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FailureLineBody {
    /// Its number.
    pub line: u64,
    /// When its first byte was read.
    pub at: Timestamp,
    /// The stream it was read from.
    pub stream: StreamName,
    /// Its beginning, without colours.
    pub text: String,
    /// How much it says about what failed, to 100.
    pub weight: u8,
}

/// How many lines were printed when.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OutputShapeBody {
    /// The number of the oldest line that is kept.
    pub first_line: u64,
    /// How many lines have ended so far.
    pub ended_lines: u64,
    /// The bytes between the oldest and the newest that are kept, gaps included.
    pub bytes: u64,
    /// When the oldest output that is kept was read; absent where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Timestamp>,
    /// When the newest was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Timestamp>,
    /// Slices of that time, of equal length.
    pub buckets: Vec<ShapeBucketBody>,
    /// The line from which on failures are counted: those of the newest output.
    pub failures_from_line: u64,
}

/// What was printed in one slice of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ShapeBucketBody {
    /// Lines that ended.
    pub lines: u64,
    /// Those of them on stderr.
    pub stderr_lines: u64,
    /// Lines that state a failure.
    pub failure_lines: u64,
}
