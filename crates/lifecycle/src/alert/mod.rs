//! Decides when somebody is told that an execution uses much: once for each crossing of a
//! threshold.

mod crossings;
#[cfg(test)]
mod walk_tests;

pub use crossings::{AlertCrossings, AlertTransition, UsageObservation};
