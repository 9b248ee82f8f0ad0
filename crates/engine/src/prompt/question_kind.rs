//! The kinds of answers to prompts and questions, and the limit on their options.

pub use ostler_model::QuestionKind;

/// The most options of a prompt or a question.
pub const OPTIONS: usize = 100;
