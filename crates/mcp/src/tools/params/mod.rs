//! Parameters that several tools take.

pub(super) mod action;
mod command;
pub(super) mod isolation;
pub(super) mod output_range;
pub(super) mod wait_for;

pub(super) use command::{COMMAND, choose_shell, parse_command};
pub(super) use wait_for::{WAIT_LIMIT_MS, parse_pattern};
