//! The init of a container. It takes no arguments: it listens until the container ends.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    let environment: Vec<_> = std::env::vars_os().collect();
    match ostler_container_init::init::run(&environment) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // The engine shows what a container that did not start has written.
            let _closed = std::io::Write::write_all(
                &mut std::io::stderr(),
                format!("ostler: the init cannot start: {error}\n").as_bytes(),
            );
            ExitCode::FAILURE
        }
    }
}
