//! Chaos tests: `kill -9` of the daemon, the zygote or a shim at random moments, together with
//! faults of the host; then checks that every line is there once, every status is true, every call
//! has a response, and no process is left.

mod calls;
mod checks;
mod fault;
mod plan;
mod runner;
mod terminal_sessions;

pub(crate) use runner::{ChaosArgs, run, torture};
