//! Shells that mark where commands begin and end.

mod integration;
mod preamble;
mod state;
#[cfg(test)]
mod state_tests;

pub use integration::{LITERAL_INPUT, SCRIPTS, ScriptFile, ShellLaunch, shell_launch};
pub use preamble::{PREAMBLE_BYTES, preamble_len};
pub use state::ShellState;
