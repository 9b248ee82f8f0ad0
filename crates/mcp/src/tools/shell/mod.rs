//! The tools of profile `shell_state`. Their names, parameters, answers and errors are a fixed
//! interface for existing clients; `kill_process` was added.

mod execute_shell;
mod kill_process;
mod lines;
mod list_processes;
mod poll_process;
mod process;
mod read_process_output;
mod script;
mod sync_reply;
mod tool_list;

pub(super) use tool_list::TOOLS;
