//! The tools of profile `core`: `exec` runs commands, `process` reads and waits, `process_control`
//! acts, `workspace` commits or discards overlays.

pub(super) mod action;
mod as_service;
mod detail;
mod exec;
pub(super) mod execution_reply;
mod input;
pub(super) mod output_range;
mod process;
mod process_control;
mod raw;
mod repl;
mod run;
mod terminal;
mod tool_list;
mod wait_for;
mod workspace;

pub(super) use run::{COMMAND, choose_shell, parse_command};
pub(super) use tool_list::TOOLS;
pub(super) use wait_for::{WAIT_LIMIT_MS, parse_pattern};
