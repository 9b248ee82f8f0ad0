//! Output of commands as text for agents and people: clean lines within a budget, with omitted
//! lines counted, and sentences about services and isolation.
//!
//! * [`read_rows`] and [`read_page`] read from a journal what a reply can contain: the first lines,
//!   the last ones, and failure lines between them.
//! * [`to_rows`] and [`fold_lines`] decode lines, clean them of control sequences ([`clean()`]) and
//!   fold redraws ([`RedrawFolder`]) into [`OutputRow`]s.
//! * [`excerpt()`] makes the text blocks of a reply from rows, within an [`ExcerptBudget`];
//!   [`failure_lines`] decides which lines it prefers.
//! * [`service`] and [`isolation`] describe starts, waits, limits and overlays in sentences.
//! * [`parse_time_or_cursor`] and [`TimestampPrefix`] read and write times as people do.
//!
//! Everything but the reader of journals is pure: no clock, no file, no environment. Reading
//! blocks; on which thread that happens is the caller's choice. This crate must never know the
//! engine, MCP or HTTP: it takes the fields it needs.
#![forbid(unsafe_code)]

mod ansi;
mod binary;
mod clean;
mod condense;
mod cost;
mod excerpt;
mod excerpt_piece;
pub mod failure_lines;
pub mod isolation;
mod redraw;
mod row;
mod row_reader;
mod rows;
mod select_lines;
pub mod service;
mod stream_budget;
mod time;
mod truncate;

pub use clean::clean;
pub use cost::cut_row;
pub use excerpt::{
    Excerpt, ExcerptBudget, FAILURE_CHARS, QUIET_CHARS, REPLY_CHARS, REPLY_LIMIT_CHARS, excerpt,
};
pub use excerpt_piece::{ExcerptInput, ExcerptPiece, HiddenLines, OmittedLines};
pub use redraw::RedrawFolder;
pub use row::OutputRow;
pub use row_reader::{
    RowSlice, TextPage, focus_on_matches, read_page, read_rows, with_pattern_encoding,
};
pub use rows::{LINE_TAIL_BYTES, fold_lines, mark_clipped, splice_line_end, to_rows};
pub use time::{TimeError, TimeOrCursor, TimestampPrefix, parse_time_or_cursor};
pub use truncate::truncated;

#[cfg(test)]
mod log_tests;
#[cfg(test)]
mod sample;
