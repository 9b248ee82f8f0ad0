//! Output for agents (F3): clean text within a budget, with what is left out counted. Pure.
//!
//! Lines come from the journal, become [`Row`]s (decoded, cleaned, redraws folded), and an
//! [`excerpt()`] of them becomes the text blocks of a reply: the first lines, the last ones,
//! and of those between what says that something failed ([`faults`]).

mod binary;
mod choose;
mod clamped;
mod clean;
mod condense;
mod excerpt;
pub mod faults;
mod lanes;
mod price;
mod redraw;
mod rows;
pub mod service;
mod time;
mod tokens;
pub mod walls;

pub use clamped::clamped;
pub use clean::clean;
pub use excerpt::{
    Budget, Excerpt, FAULT_CHARS, Hidden, Material, Omitted, Piece, QUIET_CHARS, REPLY_CHARS,
    REPLY_LIMIT_CHARS, excerpt,
};
pub use price::clamp;
pub use redraw::Fold;
pub use rows::{Row, TAIL_OF_LINE_BYTES, fold, frame, rows, splice};
pub use time::{Moment, Prefix, TimeError, moment};

#[cfg(test)]
mod log_tests;
#[cfg(test)]
mod sample;
