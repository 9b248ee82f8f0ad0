//! The tools of profile `template`: command templates, listed and run.

mod template_list;
mod template_run;
mod tool_list;

pub(super) use tool_list::TOOLS;
