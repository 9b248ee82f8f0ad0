//! The program: role entry points, arguments, configuration, wiring, exit codes.
//!
//! * `__witness`: what [`doctor`] walls off, to see whether it is.
//! * `__keeper`: forks shims; its whole life is in `ostler_process`.
//! * `__gate`: a cell's way to the hosts it may reach; its whole life is there too.
//! * [`daemon`]: the engine behind a Unix socket, one per user and state directory.
//! * [`front`]: what an MCP client starts; hands its streams to the daemon and sleeps.
//! * [`attach`]: our terminal as a window onto a session's.
//! * [`commands`]: one file per verb; clients of the daemon through [`client`].
//! * [`config`]: defaults, files, environment, flags. Only this crate reads any of them.
#![forbid(unsafe_code)]

mod args;
mod attach;
mod client;
mod commands;
mod config;
mod daemon;
mod doctor;
mod error;
mod front;
mod hello;
mod output;
mod paths;
mod setup;
mod socket;

use std::io::Write as _;
use std::process::ExitCode;

use clap::Parser as _;

use crate::error::CommandError;

/// The exit code of bad usage, as in sysexits(3).
const EXIT_USAGE: u8 = 64;

fn main() -> ExitCode {
    // Before anything else: a keeper forks and must stay small, a gate has no thread yet.
    match std::env::args_os().nth(1) {
        Some(word) if word == ostler_process::KEEPER_ARGUMENT => ostler_process::keeper_main(),
        Some(word) if word == ostler_process::GATE_ARGUMENT => ostler_process::gate_main(),
        Some(_) | None => {}
    }
    let first = std::env::args_os().nth(1);
    if first.is_some_and(|word| word == doctor::WITNESS_ARGUMENT) {
        return ExitCode::from(doctor::witness_main());
    }
    let cli = match args::Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return refuse(&error),
    };
    let code = commands::run(cli).unwrap_or_else(|error| {
        report(&error);
        error.exit_code()
    });
    ExitCode::from(code)
}

/// Bad usage, or help that was asked for.
fn refuse(error: &clap::Error) -> ExitCode {
    // A reader that went away needs no help.
    drop(error.print());
    if error.use_stderr() {
        ExitCode::from(EXIT_USAGE)
    } else {
        ExitCode::SUCCESS
    }
}

/// Tells the person what went wrong; a broken pipe is nobody's business.
fn report(error: &CommandError) {
    match error {
        CommandError::BrokenPipe => {}
        CommandError::Told { .. } | CommandError::Disconnected(_) => {
            write_stderr(&error.to_string());
        }
    }
}

/// Tells the person something that is no error.
fn tell(message: &str) {
    write_stderr(&format!("ostler: {message}"));
}

/// Bytes of a command's standard error, on ours.
fn write_error_bytes(bytes: &[u8]) {
    // As above.
    drop(std::io::stderr().write_all(bytes));
}

fn write_stderr(message: &str) {
    // Nobody is left to tell that standard error is closed.
    drop(writeln!(std::io::stderr(), "{message}"));
}
