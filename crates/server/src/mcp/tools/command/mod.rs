//! The tools of profile `command`, document 000 §3: one file per tool. Names, parameters and
//! defaults are the document's; `reason` and `isolation` are ours.

mod command_bg_start;
mod command_execute;
mod command_ps_clean;
mod command_ps_detail;
mod command_ps_list;
mod command_ps_logs;
mod command_ps_stop;
mod offered;
mod starting;
pub(super) mod status;

pub(super) use offered::TOOLS;
