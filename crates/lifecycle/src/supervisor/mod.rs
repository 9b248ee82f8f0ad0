//! The pure policy of one execution: what happens next, given what happened.
//!
//! [`Supervisor::handle`] takes one [`SupervisorInput`] with its time and returns the
//! [`SupervisorEffect`]s to perform, in order. No clock, no I/O, no async: every race is a sequence
//! of inputs, and a test can walk through millions of them.

pub mod effect;
mod exit;
mod forwarded_url;
pub mod input;
mod loss;
mod pause;
mod resume;
mod service;
mod state_machine;
pub mod termination;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod walk_tests;

pub use effect::{SupervisorEffect, Timer};
pub use exit::{BACKOFF_FIRST_MS, BACKOFF_MAX_MS, MAX_TRIES_SHIFT, RESTART_STABLE_MS};
pub use input::SupervisorInput;
pub use state_machine::Supervisor;
