//! Waiting for a pattern: which text of a command's output is searched, and from which position.
//! Pure.

mod echo;
mod input;
mod searcher;
#[cfg(test)]
mod searcher_tests;
mod terminal_line;

pub(crate) use echo::EchoFilter;
pub use input::SentInput;
pub use searcher::{OVERLAP_BYTES, WINDOW_BYTES};
pub(crate) use searcher::{SearchHit, SearchStart, Searcher};
pub use terminal_line::plain_text;
