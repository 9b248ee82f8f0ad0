//! The tools of profile `command`: one file per tool. Their names, parameters and defaults are a
//! fixed interface for existing clients; `wait_for` and isolation were added.

mod command_bg_start;
mod command_execute;
mod command_ps_clean;
mod command_ps_detail;
mod command_ps_list;
mod command_ps_logs;
mod command_ps_stop;
mod start_params;
pub(super) mod status;
mod tool_list;

pub(super) use tool_list::TOOLS;
