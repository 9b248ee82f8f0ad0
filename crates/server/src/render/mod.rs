//! Output for agents: clean text within a budget, with omissions counted. Pure.
//!
//! Lines come from the journal, become [`OutputRow`]s (decoded, cleaned, redraws folded), and an
//! [`excerpt()`] of them becomes the text blocks of a reply: the first lines, the last ones, and
//! the failure lines between them ([`failure_lines`]).

mod ansi;
mod binary;
mod clean;
mod condense;
mod cost;
mod excerpt;
pub mod failure_lines;
pub mod isolation;
mod redraw;
mod rows;
mod select_lines;
pub mod service;
mod stream_budget;
mod time;
mod truncate;

pub use clean::clean;
pub use cost::elide_middle;
pub use excerpt::{
    Excerpt, ExcerptBudget, ExcerptInput, ExcerptPiece, FAILURE_CHARS, HiddenLines, OmittedLines,
    QUIET_CHARS, REPLY_CHARS, REPLY_LIMIT_CHARS, excerpt,
};
pub use redraw::RedrawFolder;
pub use rows::{LINE_TAIL_BYTES, OutputRow, fold_lines, mark_clipped, splice_line_end, to_rows};
pub use time::{TimeError, TimeOrCursor, TimestampPrefix, parse_time_or_cursor};
pub use truncate::truncated;

#[cfg(test)]
mod log_tests;
#[cfg(test)]
mod sample;
