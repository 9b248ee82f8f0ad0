//! `kill -9` of the daemon, the keeper or a shim at random moments, with faults of the host around
//! it, and then the questions: is every line there once, is the status the true one, is every call
//! answered, is nobody left?

mod calls;
mod checks;
mod fault;
mod plan;
mod runner;
mod terminal_sessions;

pub(crate) use runner::{ChaosArgs, run, torture};
