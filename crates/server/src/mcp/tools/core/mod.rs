//! The tools of profile `core` (F2, F4): `exec` runs, `process` looks and waits,
//! `process_control` acts,
//! `workspace` decides about what was kept apart.

pub(super) mod action;
mod detail;
mod exec;
mod input;
mod offered;
mod process;
mod process_control;
mod raw;
mod repl;
mod run;
pub(super) mod select;
mod serve;
pub(super) mod shown;
mod terminal;
mod until;
mod workspace;

pub(super) use offered::TOOLS;
pub(super) use run::{COMMAND, choose_shell, program};
pub(super) use until::{WAIT_LIMIT_MS, expression};
