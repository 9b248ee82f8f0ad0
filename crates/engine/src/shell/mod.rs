//! Shell sessions: commands typed into a running shell, and their results.
//!
//! The shell's markers (OSC sequences) report where a command begins and ends; without them the
//! kernel reports which process waits for input. `run_state` combines both, without a clock;
//! `runner` observes and types.

mod api;
mod busy_reason;
mod idempotency;
mod install;
mod output_start;
mod prepare_prompt;
mod run;
mod run_slots;
mod run_state;
#[cfg(test)]
mod run_state_tests;
mod runner;
mod runner_event;
mod script;
mod shell_scanner;
mod tty_processes;

pub(crate) use api::{ShellContext, deadline, run, start_request, wait};
pub use run::{IdempotencyKey, ShellCommand, ShellEnd, ShellRun};
pub(crate) use run_slots::ShellRunSlots;
