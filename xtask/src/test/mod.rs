//! Everything that must hold, in one command, with one number at the end.

mod clients;
mod conformance;
mod guest;
mod plan;
mod run;
mod server;
mod steps;
mod tally;

pub(crate) use run::{Args, run};
pub(crate) use tally::Tally;
