//! The tools of profile `context`: contexts, created, listed, used and closed.

mod context_close;
mod context_create;
mod context_list;
mod context_run;
mod tool_list;

pub(super) use tool_list::TOOLS;
