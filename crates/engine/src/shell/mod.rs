//! Shell sessions (C14): a command typed into a living shell, and what became of it.
//!
//! The shell tells by marks where a command begins and ends; the kernel tells who waits for
//! input where no marks come. `run_state` is what follows from both, without a clock;
//! `runner` looks and types.

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
