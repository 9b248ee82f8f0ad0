//! The tools of profile `interaction`: list and answer questions of commands.

mod interaction_answer;
mod interaction_list;
mod question;
mod tool_list;

pub(super) use tool_list::TOOLS;
