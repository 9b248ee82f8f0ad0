//! The tools of profile `interaction` (B7): questions of commands, listed and answered.

mod interaction_answer;
mod interaction_list;
mod offered;
mod question;

pub(super) use offered::TOOLS;
