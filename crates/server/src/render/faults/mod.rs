//! Which lines say what failed. Pure, and one table: `rules`.

mod rules;
mod weigh;

pub use rules::CANDIDATES;
pub use weigh::{Fault, STRONG, shape, weigh};
