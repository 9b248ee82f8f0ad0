//! Everything that must hold, in one command, with one number at the end.

mod clients;
mod conformance;
mod counts;
mod plan;
mod run;
mod server;
mod steps;
mod vm;

pub(crate) use counts::TestCounts;
pub(crate) use run::{TestRunArgs, run};
