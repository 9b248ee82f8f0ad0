//! The tools of profile `core`: `exec` runs commands, `process` reads and waits, `process_control`
//! acts, `workspace` commits or discards overlays.

mod as_service;
mod detail;
mod exec;
mod input;
mod process;
mod process_control;
mod terminal;
mod tool_list;
mod watch;
mod workspace;

pub(super) use exec::{TIMEOUT_LIMIT_S, WAIT_MS, start_without_wait};
pub(super) use tool_list::TOOLS;
pub(super) use watch::reply_with_watch;
