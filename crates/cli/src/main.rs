//! The program: entry points of its roles, arguments, configuration, wiring, exit codes.
//!
//! * `__witness`: the probe that [`doctor`] runs in a sandbox.
//! * `__keeper`: the zygote (process `ostler-keeper`), which forks shims; see `ostler_backend_local`.
//! * `__gate`: the egress proxy of a jail; see `ostler_egress`.
//! * [`daemon`]: the engine behind a Unix socket, one for each user and state directory.
//! * [`stdio_proxy`]: the process that an MCP client starts; passes its streams to the daemon and
//!   waits.
//! * [`attach`]: connects the local terminal to that of a session.
//! * [`commands`]: one file for each verb; clients of the daemon through [`client`].
//! * [`containers`]: the backends of the program, and the container engine of `ostler image`.
//! * [`config`]: defaults, files, environment, flags. Only this crate reads any of them.
#![forbid(unsafe_code)]

mod argument_file;
mod attach;
mod batch;
mod client;
mod commands;
mod config;
mod containers;
mod context;
mod daemon;
mod doctor;
mod error;
mod executions;
mod missing_output;
mod output;
mod paths;
mod process_env;
#[cfg(test)]
mod reference_tests;
mod secret_variables;
mod stdio_protocol;
mod stdio_proxy;
mod unix_socket;

use std::process::ExitCode;

use clap::Parser as _;

pub(crate) use crate::output::{print_error, print_note};

/// The exit code of invalid usage, as in sysexits(3).
const EXIT_USAGE: u8 = 64;

fn main() -> ExitCode {
    // First of all: a zygote forks and must stay small, an egress proxy must not have threads yet.
    match std::env::args_os().nth(1) {
        Some(word) if word == ostler_backend_local::ZYGOTE_ARGUMENT => {
            ostler_backend_local::zygote_main()
        }
        Some(word) if word == ostler_backend_local::EGRESS_ARGUMENT => {
            ostler_backend_local::egress_main()
        }
        Some(_) | None => {}
    }
    let first = std::env::args_os().nth(1);
    if first.is_some_and(|word| word == doctor::PROBE_ARGUMENT) {
        return ExitCode::from(doctor::sandbox_probe_main());
    }
    let words = commands::kill::with_signal_option(std::env::args_os().collect());
    let cli = match commands::args::Cli::try_parse_from(words) {
        Ok(cli) => cli,
        Err(error) => {
            return exit_with_usage(&commands::args::suggest_verb(
                error,
                std::env::args_os().skip(1),
            ));
        }
    };
    let code = commands::run(cli).unwrap_or_else(|error| {
        print_error(&error);
        error.exit_code()
    });
    ExitCode::from(code)
}

/// Prints a usage error, or help that was requested.
fn exit_with_usage(error: &clap::Error) -> ExitCode {
    let printed = output::print_usage(error, &process_env::ProcessEnv::from_process());
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
