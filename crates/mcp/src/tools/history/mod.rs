//! The tool of profile `history`.

mod history_search;
mod tool_list;

pub(super) use tool_list::TOOLS;
