//! Shells that mark where commands begin and end.

mod integration;
mod preamble;
mod state;
#[cfg(test)]
mod state_tests;

pub use integration::{SCRIPTS, ScriptFile, ShellLaunch, launch};
pub use preamble::{PROLOGUE_BYTES, prologue_len};
pub use state::ShellState;
