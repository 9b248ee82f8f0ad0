//! All tests in one command, with one result at the end.

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
