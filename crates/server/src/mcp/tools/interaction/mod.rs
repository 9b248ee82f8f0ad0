//! The tools of profile `interaction`: questions of commands, listed and answered.

mod interaction_answer;
mod interaction_list;
mod question;
mod tool_list;

pub(super) use tool_list::TOOLS;
