//! Output for agents (F3): clean text within a budget, with what is left out counted. Pure.
//!
//! Lines come from the journal, become [`Row`]s (decoded, cleaned), and an [`excerpt()`] of
//! them becomes the text blocks of a reply.

mod clean;
mod excerpt;
mod rows;
mod time;

pub use clean::clean;
pub use excerpt::{Budget, Excerpt, Hidden, Omitted, REPLY_CHARS, cost, excerpt};
pub use rows::{Row, TAIL_OF_LINE_BYTES, rows, splice};
pub use time::{Moment, Prefix, TimeError, moment};
