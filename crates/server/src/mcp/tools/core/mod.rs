//! The tools of profile `core` (F2, F4): `exec` runs, `process` looks and waits,
//! `process_control` acts,
//! `workspace` decides about what was kept apart.

pub(super) mod action;
mod detail;
mod exec;
mod offered;
mod process;
mod process_control;
mod raw;
pub(super) mod select;
mod serve;
pub(super) mod shown;
mod until;
mod workspace;

pub(super) use exec::command;
pub(super) use offered::TOOLS;
pub(super) use until::{WAIT_LIMIT_MS, expression, unexplained};
