//! The tools of profile `core` (F2, F4): `exec` runs, `process` looks and waits,
//! `process_control` acts.

mod action;
mod detail;
mod exec;
mod offered;
mod process;
mod process_control;
mod raw;
mod select;
mod shown;
mod until;

pub(super) use offered::TOOLS;
pub(super) use until::{WAIT_LIMIT_MS, expression};
