//! Whether a command waits for an answer, and for what kind (B7): kernel evidence first, the
//! words of the prompt second. Pure; the waiting itself is the driver's.

mod clean;
mod detect;
mod menu;
mod screen;
mod tail;
#[cfg(test)]
mod tests;
mod words;

pub(crate) use clean::clean;
pub use detect::{Detected, Seen, detect};
pub use screen::Shown;
pub use tail::{PROMPT_TEXT_BYTES, Piece, Tail};
