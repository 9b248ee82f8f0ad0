//! The pure policy of one execution: what happens next, given what happened.
//!
//! [`Supervisor::handle`] takes one [`Input`] with the time it came and answers the
//! [`Effect`]s to carry out, in order. No clock, no I/O, no async: every race is a sequence of
//! inputs, and a test can walk through millions of them.

mod decide;
pub mod effect;
pub mod ending;
mod exit;
pub mod input;
mod service;
mod standstill;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod walk_tests;

pub use decide::Supervisor;
pub use effect::{Effect, Timer};
pub use exit::{BACKOFF_FIRST_MS, BACKOFF_MAX_MS, MAX_TRIES_SHIFT, RESTART_STABLE_MS};
pub use input::Input;
