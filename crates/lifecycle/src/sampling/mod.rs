//! When the resource usage of which execution is sampled.
//!
//! [`SampleSchedule`] holds a time for each execution and returns those that are due together. No
//! clock, no I/O: the engine's resource monitor reads the counters.

mod schedule;
#[cfg(test)]
mod walk_tests;

pub use schedule::{SAMPLE_INTERVAL, SampleSchedule, WATCH_LEASE, WATCHED_INTERVAL};
