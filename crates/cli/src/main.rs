//! The program: role entry points, arguments, configuration, wiring, exit codes.
//!
//! * `__witness`: what [`doctor`] walls off, to see whether it is.
//! * `__keeper`: forks shims; its whole life is in `ostler_process`.
//! * `__gate`: a cell's way to the hosts it may reach; its whole life is there too.
//! * [`daemon`]: the engine behind a Unix socket, one per user and state directory.
//! * [`stdio_proxy`]: what an MCP client starts; hands its streams to the daemon and sleeps.
//! * [`attach`]: our terminal as a window onto a session's.
//! * [`commands`]: one file per verb; clients of the daemon through [`client`].
//! * [`config`]: defaults, files, environment, flags. Only this crate reads any of them.
#![forbid(unsafe_code)]

mod args;
mod attach;
mod client;
mod commands;
mod config;
mod context;
mod daemon;
mod doctor;
mod error;
mod missing_output;
mod output;
mod paths;
mod stdio_protocol;
mod stdio_proxy;
mod unix_socket;

use std::process::ExitCode;

use clap::Parser as _;

pub(crate) use crate::output::{print_error, print_note};

/// The exit code of bad usage, as in sysexits(3).
const EXIT_USAGE: u8 = 64;

fn main() -> ExitCode {
    // Before anything else: a keeper forks and must stay small, a gate has no thread yet.
    match std::env::args_os().nth(1) {
        Some(word) if word == ostler_process::ZYGOTE_ARGUMENT => ostler_process::zygote_main(),
        Some(word) if word == ostler_process::EGRESS_ARGUMENT => ostler_process::egress_main(),
        Some(_) | None => {}
    }
    let first = std::env::args_os().nth(1);
    if first.is_some_and(|word| word == doctor::PROBE_ARGUMENT) {
        return ExitCode::from(doctor::sandbox_probe_main());
    }
    let cli = match args::Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            return exit_with_usage(&args::suggest_verb(error, std::env::args_os().skip(1)));
        }
    };
    let code = commands::run(cli).unwrap_or_else(|error| {
        print_error(&error);
        error.exit_code()
    });
    ExitCode::from(code)
}

/// Bad usage, or help that was asked for.
fn exit_with_usage(error: &clap::Error) -> ExitCode {
    let printed = output::print_usage(error, &config::ProcessEnv::from_process());
    if error.use_stderr() {
        return ExitCode::from(EXIT_USAGE);
    }
    match printed {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let error = error::output_failed(&error);
            print_error(&error);
            ExitCode::from(error.exit_code())
        }
    }
}
