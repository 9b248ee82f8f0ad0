//! Waiting for a pattern: which text of a command's output is searched, and from where. Pure.

mod echo;
mod input;
mod plain;
mod searcher;
#[cfg(test)]
mod searcher_tests;

pub(crate) use echo::Echo;
pub use input::SentInput;
pub(crate) use plain::plain_text;
pub(crate) use searcher::{Hit, Searcher, Start};
pub use searcher::{OVERLAP_BYTES, WINDOW_BYTES};
