//! Detects whether a command waits for an answer, and of which kind: by evidence from the kernel
//! first, by the text of the prompt second. Pure; the driver does the waiting.

mod detect;
mod menu;
mod patterns;
mod place;
mod prompt_tail;
mod question_kind;
mod screen;
#[cfg(test)]
mod tests;
mod visible_line;

pub(crate) use detect::key_menu;
pub use detect::{DetectedPrompt, PromptBasis, PromptContext, detect};
pub use place::PromptPlace;
pub use prompt_tail::{PROMPT_TEXT_BYTES, PromptTail, PromptTailEvent};
pub use question_kind::{OPTIONS, QuestionKind};
pub use screen::ScreenPrompt;
pub(crate) use visible_line::visible_line;
