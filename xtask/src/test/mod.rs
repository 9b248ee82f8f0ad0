//! All tests in one command, with one result at the end.

mod cargo;
mod clients;
mod conformance;
mod plan;
mod run;
mod rustdoc;
mod schedule;
mod server;
mod steps;
mod tmpfs;
mod vm;
mod web;

pub(crate) use run::{TestRunArgs, run};
pub(crate) use rustdoc::run_as_rustdoc;
