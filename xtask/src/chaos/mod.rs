//! `kill -9` of the daemon, the keeper or a shim at random moments, and then the questions:
//! is every line there once, is the status the true one, is nobody left?

mod checks;
mod dialogue;
mod plan;
mod rounds;

pub(crate) use rounds::{Args, run, torture};
