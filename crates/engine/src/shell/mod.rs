//! Shell sessions (C14): a command typed into a living shell, and what became of it.
//!
//! The shell tells by marks where a command begins and ends; the kernel tells who waits for
//! input where no marks come. `decide` is what follows from both, without a clock;
//! `session` looks and types.

mod busy;
mod decide;
#[cfg(test)]
mod decide_tests;
mod facade;
mod install;
mod once;
mod output;
mod run;
mod scan;
mod script;
mod session;
mod who;

pub(crate) use busy::RunSlot;
pub(crate) use install::directory as scripts;
pub use run::{Once, ShellCommand, ShellEnd, ShellRun};
