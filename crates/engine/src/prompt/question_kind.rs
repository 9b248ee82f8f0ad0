//! The kinds of answers that a prompt or a question wants, and how many options it has.

pub use ostler_model::QuestionKind;

/// Number of options that a prompt or a question has at most.
pub const OPTIONS: usize = 100;
