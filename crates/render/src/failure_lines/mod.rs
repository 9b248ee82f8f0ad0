//! Recognises lines that state failures. Pure, from one table: `rules`.

mod classify;
mod rules;

pub use classify::{FailureLine, STRONG_WEIGHT, classify, line_shape};
pub use rules::CANDIDATES;
