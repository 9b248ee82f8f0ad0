//! Documentation from the artifacts of the test build.
//!
//! `cargo doc` checks every dependency once more, since it shares nothing with a build: that took most
//! of its time. `cargo test --doc` runs rustdoc on each library with the dependencies that are built
//! already, so this program stands in for rustdoc there: it runs the real one twice, first for the
//! documentation, whose warnings are errors, then for the examples.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus};

use anyhow::{Context, Result};

use super::cargo::{self, WORKSPACE_FLAGS};
use super::plan::StepContext;
use super::steps::run_parsed;
use crate::test_counts::TestCounts;

/// Set to the directory of the documentation where this program is run as rustdoc.
const OUTPUT: &str = "OSTLER_XTASK_RUSTDOC_OUTPUT";

/// The options of tests that documentation does not have; each but the first has a value.
const TEST_OPTIONS: &[&str] = &[
    "--test",
    "--test-args",
    "--test-run-directory",
    "--test-runtool",
    "--test-runtool-arg",
];

/// Documents the libraries, and runs the examples of their documentation.
pub(super) fn run(context: StepContext<'_>) -> Result<TestCounts> {
    let options = ["--doc", "--no-fail-fast"];
    let test = [&["test"], WORKSPACE_FLAGS, &options].concat();
    let mut test = cargo::workspace_build(context, &test)?;
    let target = context.workspace.target();
    test.env("RUSTDOC", target.join("debug/xtask"))
        .env(OUTPUT, target.join("doc"));
    run_parsed(&mut test)
}

/// Acts as rustdoc, where [`run`] is what calls this program; none otherwise.
pub(crate) fn run_as_rustdoc() -> Option<Result<ExitCode>> {
    let output = PathBuf::from(std::env::var_os(OUTPUT)?);
    let args: Vec<OsString> = std::env::args_os().skip(1).collect();
    Some(document_then_test(&args, &output))
}

fn document_then_test(args: &[OsString], output: &Path) -> Result<ExitCode> {
    if args.iter().any(|arg| arg == "--test") {
        let mut document = Command::new("rustdoc");
        document
            .args(without_test_options(args))
            .args(["-D", "warnings", "-o"])
            .arg(output);
        let documented = rustdoc(&mut document)?;
        if !documented.success() {
            return Ok(ExitCode::FAILURE);
        }
    }
    let tested = rustdoc(Command::new("rustdoc").args(args))?;
    // Cargo reads this status as that of the tests.
    let code = tested.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}

fn rustdoc(command: &mut Command) -> Result<ExitStatus> {
    command
        .env_remove(OUTPUT)
        .status()
        .context("rustdoc cannot be run")
}

/// The arguments that documentation shares with tests, such as paths and features.
fn without_test_options(args: &[OsString]) -> Vec<&OsString> {
    let mut rest = args.iter();
    let mut kept = Vec::new();
    while let Some(arg) = rest.next() {
        if arg == TEST_OPTIONS[0] {
            continue;
        }
        if TEST_OPTIONS.iter().any(|option| arg == option) {
            let _value = rest.next();
            continue;
        }
        kept.push(arg);
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_tests_are_not_those_of_documentation() {
        let args = "--edition=2024 --test src/lib.rs --test-run-directory /a --extern x=y.rlib \
                    --test-runtool env --test-runtool-arg -u --cfg feature";
        let args: Vec<OsString> = args.split(' ').map(OsString::from).collect();
        let kept = "--edition=2024 src/lib.rs --extern x=y.rlib --cfg feature";
        assert_eq!(
            without_test_options(&args),
            kept.split(' ').collect::<Vec<_>>()
        );
    }
}
