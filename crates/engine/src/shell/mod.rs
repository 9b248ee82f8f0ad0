//! Shell sessions: commands typed into a running shell, and their results.
//!
//! The shell's markers (OSC sequences) say where a command begins and ends; where none arrive, the
//! kernel says which process waits for input. `run_state` combines both, without a clock; `runner`
//! observes and types.

mod api;
mod idempotency;
mod install;
mod output_start;
mod run;
mod run_lock;
mod run_state;
#[cfg(test)]
mod run_state_tests;
mod runner;
mod script;
mod shell_scanner;
mod tty_processes;

pub use run::{IdempotencyKey, ShellCommand, ShellEnd, ShellRun};
