//! The tools of profile `shell`, document 003 (D1, D2): names, parameters, answers and errors
//! are the document's; `kill_process` is ours.

mod execute_shell;
mod kill_process;
mod lines;
mod list_processes;
mod offered;
mod poll_process;
mod process;
mod read_process_output;
mod script;
mod spent;

pub(super) use offered::TOOLS;
