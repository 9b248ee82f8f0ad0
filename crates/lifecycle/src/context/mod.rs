//! The state machine of a context: a directory with options that executions of one project and user
//! share. It decides who may use it, when it ends, and when its files are removed.
//!
//! [`ContextLifecycle::handle`] takes one [`ContextInput`] with its time and returns one
//! [`ContextDecision`]. No clock, no I/O: the engine's context manager performs what is decided.

mod input;
mod state;
mod state_machine;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod walk_tests;

pub use input::{ContextDecision, ContextInput, ContextRefusal};
pub use state::{ContextEnd, ContextState};
pub use state_machine::ContextLifecycle;
