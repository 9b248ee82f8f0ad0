//! The developer's commands: `cargo xtask setup | test | tidy | openapi | chaos | bench`.
#![forbid(unsafe_code)]

mod bench;
mod chaos;
mod console;
mod openapi;
mod repository_files;
mod setup;
mod shell;
mod test;
mod test_counts;
mod test_env;
mod tidy;
mod workspace;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

use crate::console::CheckResult;
use crate::workspace::Workspace;

#[derive(Debug, Parser)]
#[command(
    name = "cargo xtask",
    about = "Set up, test, check, measure and torture Ostler"
)]
struct Args {
    #[command(subcommand)]
    verb: XtaskCommand,
}

#[derive(Debug, Subcommand)]
enum XtaskCommand {
    /// Install what the tests need; quick when nothing is missing
    Setup(setup::SetupArgs),
    /// Run everything that must hold; non-zero on any failure
    Test(test::TestRunArgs),
    /// Check the arrows between crates, the size limits and the forbidden calls
    Tidy(tidy::TidyArgs),
    /// Write docs/openapi.json from the routes, handlers and bodies of the source
    Openapi(openapi::OpenApiArgs),
    /// Kill daemon, keeper and shims at random moments and count the lines
    Chaos(chaos::ChaosArgs),
    /// Measure, each figure against a floor of the same run
    Bench(bench::BenchArgs),
    /// Print numbered lines, ten a second; what the measurements run a thousand of
    #[command(hide = true)]
    Tick(bench::TickArgs),
    /// Print the monotonic clock, line by line; what output is timed by
    #[command(hide = true)]
    Stamp(bench::StampArgs),
    /// Listen on a free port and say since when; what services are measured with
    #[command(hide = true)]
    Listen(bench::ListenArgs),
}

fn main() -> ExitCode {
    if let Some(documented) = test::run_as_rustdoc() {
        return documented.unwrap_or_else(|error| report(&error));
    }
    let here = |act: &dyn Fn(&Workspace) -> Result<CheckResult>| act(&Workspace::find()?);
    let outcome = match &Args::parse().verb {
        XtaskCommand::Setup(args) => here(&|workspace| setup::run(workspace, args)),
        XtaskCommand::Test(args) => here(&|workspace| test::run(workspace, args)),
        XtaskCommand::Tidy(args) => here(&|workspace| tidy::run(workspace, args)),
        XtaskCommand::Openapi(args) => here(&|workspace| openapi::run(workspace, args)),
        XtaskCommand::Chaos(args) => here(&|workspace| chaos::run(workspace, args)),
        XtaskCommand::Bench(args) => here(&|workspace| bench::run(workspace, args)),
        XtaskCommand::Tick(args) => bench::tick(args),
        XtaskCommand::Stamp(args) => bench::stamp(args),
        XtaskCommand::Listen(args) => bench::listen(args),
    };
    match outcome {
        Ok(verdict) => verdict.into(),
        Err(error) => report(&error),
    }
}

fn report(error: &anyhow::Error) -> ExitCode {
    console::print_line(format_args!("xtask: {error:#}"));
    ExitCode::FAILURE
}
