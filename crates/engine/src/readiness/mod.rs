//! When a service is ready, decided from what was seen (E3): pure, told the time.
//!
//! [`Readiness`] belongs to one attempt. It takes in what was [`Seen`] and answers what it
//! [`Found`]s out; [`Readiness::wants`] says what is to be looked at next. No clock, no I/O.

mod after;
mod before;
mod expressions;
mod heard;
mod limits;
mod lines;
mod listeners;
mod machine;
mod main_port;
mod printed;
mod probing;
mod protocols;
mod resume;
mod schedule;
mod seen;
mod target;
#[cfg(test)]
mod tests;
mod words;

pub(crate) use expressions::{failure_line, is_conflict};
pub use machine::{Found, Readiness, Wants};
pub use seen::{Answered, NotifyState, ProbeOrder, Seen, Socket};
