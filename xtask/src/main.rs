//! The developer's commands: `cargo xtask setup | test | tidy | chaos | bench`.
#![forbid(unsafe_code)]

mod bench;
mod chaos;
mod lab;
mod setup;
mod sh;
mod test;
mod tidy;
mod ui;
mod workspace;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

use crate::ui::Verdict;
use crate::workspace::Workspace;

#[derive(Debug, Parser)]
#[command(
    name = "cargo xtask",
    about = "Set up, test, check, measure and torture Ostler"
)]
struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Install what the tests need; quick when nothing is missing
    Setup(setup::Args),
    /// Run everything that must hold; non-zero on any failure
    Test(test::Args),
    /// Check the arrows between crates, the size limits and the forbidden calls
    Tidy(tidy::Args),
    /// Kill daemon, keeper and shims at random moments and count the lines
    Chaos(chaos::Args),
    /// Measure, each figure against a floor of the same run
    Bench(bench::Args),
    /// Print numbered lines, ten a second; what the measurements run a thousand of
    #[command(hide = true)]
    Tick(bench::Ticks),
    /// Print the monotonic clock, line by line; what output is timed by
    #[command(hide = true)]
    Stamp(bench::Stamps),
    /// Listen on a free port and say since when; what services are measured with
    #[command(hide = true)]
    Listen(bench::Listens),
}

fn main() -> ExitCode {
    let here = |act: &dyn Fn(&Workspace) -> Result<Verdict>| act(&Workspace::find()?);
    let outcome = match &Args::parse().verb {
        Verb::Setup(args) => here(&|workspace| setup::run(workspace, args)),
        Verb::Test(args) => here(&|workspace| test::run(workspace, args)),
        Verb::Tidy(args) => here(&|workspace| tidy::run(workspace, args)),
        Verb::Chaos(args) => here(&|workspace| chaos::run(workspace, args)),
        Verb::Bench(args) => here(&|workspace| bench::run(workspace, args)),
        Verb::Tick(args) => bench::tick(args),
        Verb::Stamp(args) => bench::stamp(args),
        Verb::Listen(args) => bench::listen(args),
    };
    match outcome {
        Ok(verdict) => verdict.into(),
        Err(error) => {
            ui::say(format_args!("xtask: {error:#}"));
            ExitCode::FAILURE
        }
    }
}
