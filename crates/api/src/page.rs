//! Output: pages of lines, and raw frames.

use ostler_model::{ByteString, Cursor, StreamName, Timestamp};
use serde::{Deserialize, Serialize};

use super::info::ExecutionBody;

/// Lines of output from a cursor or a time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OutputPageBody {
    /// The lines, stdout and stderr interleaved by the offset of their first byte.
    pub lines: Vec<LineBody>,
    /// The position to continue from.
    pub next: Cursor,
    /// Output that is gone before the first line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gap: Option<GapBody>,
    /// Output that is gone after the last line, where it has ended and nothing follows, or where the
    /// files are damaged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gap_after: Option<GapBody>,
    /// The offset from which on the files are damaged, so that later lines cannot be read; absent where they are not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub damaged_from: Option<u64>,
    /// Whether there is more from `next` on.
    pub more: bool,
    /// Lines that matched but are not in `lines`.
    pub omitted_lines: u64,
}

/// One line of output.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LineBody {
    /// When its first byte was read.
    pub at: Timestamp,
    /// The stream it was read from.
    pub stream: StreamName,
    /// Its number within its stream, from 1.
    pub number: u64,
    /// The offset of its first byte.
    pub offset: u64,
    /// The line without its end: decoded where the execution has an encoding, else its bytes.
    pub text: ByteString,
    /// Whether its end was read.
    pub terminated: bool,
    /// Bytes of this line that are not in `text`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub clipped_bytes: u64,
}

/// A range of output that is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct GapBody {
    /// First byte missing.
    pub from: u64,
    /// First byte kept after it.
    pub to: u64,
    /// How many of the bytes were lost, to a full disk or damaged files; the others were dropped on
    /// purpose: cleared, or trimmed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub lost_bytes: u64,
}

impl GapBody {
    /// The number of bytes.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.to.saturating_sub(self.from)
    }
}

/// One line of `GET …/raw` (`application/x-ndjson`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum OutputFrame {
    /// Bytes as they were read.
    Data {
        /// The stream they were read from.
        stream: StreamName,
        /// When they were read.
        at: Timestamp,
        /// The offset of the first byte.
        offset: u64,
        /// The bytes.
        data: ByteString,
    },
    /// Output that is gone.
    Gap {
        /// The range of the output.
        gap: GapBody,
    },
    /// The stream cannot continue.
    Problem {
        /// The problem.
        problem: Box<super::Problem>,
    },
    /// The last line.
    End {
        /// The state at that time; with `follow` the execution has ended.
        end: Box<ExecutionBody>,
        /// The position to continue from.
        next: Cursor,
    },
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the shape serde asks for"
)]
pub(super) const fn is_zero(value: &u64) -> bool {
    *value == 0
}
