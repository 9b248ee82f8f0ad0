//! The steps.

use std::process::{Command, Stdio};

use anyhow::Result;

use super::cargo::{self, WORKSPACE_FLAGS};
use super::plan::StepContext;
use crate::console::{CheckResult, print_line};
use crate::setup::Tier;
use crate::test_counts::TestCounts;
use crate::{chaos, setup, shell, tidy};

/// The number of concurrent Python tests.
const PYTHON_WORKERS: &str = "4";
/// More failures than this are not accidental, and are not retried.
const MAX_RETRIED: u64 = 10;
/// The duration of each fuzz target in the full tier, in seconds.
const FUZZ_SECONDS: &str = "600";
/// The number of chaos rounds in each tier.
const CHAOS_ROUNDS: (u32, u32) = (20, 200);

pub(super) fn setup(context: StepContext<'_>) -> Result<TestCounts> {
    let args = setup::SetupArgs {
        full: context.tier == Tier::Full,
    };
    setup::run(context.workspace, &args).map(to_counts)
}

pub(super) fn tidy(context: StepContext<'_>) -> Result<TestCounts> {
    tidy::run(context.workspace, &tidy::TidyArgs {}).map(to_counts)
}

fn to_counts(verdict: CheckResult) -> TestCounts {
    TestCounts::from_success(verdict == CheckResult::Holds)
}

pub(super) fn fmt(context: StepContext<'_>) -> Result<TestCounts> {
    run_counted(cargo::command(context, &["fmt", "--all", "--check"]))
}

/// Runs the unit tests by nextest, or by cargo's own runner where nextest is not installed. Tests
/// of the full tier have names that begin with `full_`.
pub(super) fn unit(context: StepContext<'_>) -> Result<TestCounts> {
    let full = context.tier == Tier::Full;
    if shell::capture(&mut cargo::command(context, &["nextest", "--version"])).is_ok() {
        let profile = if full { "full" } else { "default" };
        let options = ["--no-fail-fast", "--profile", profile];
        let nextest = [&["nextest", "run"], WORKSPACE_FLAGS, &options].concat();
        return run_parsed(&mut cargo::workspace_build(context, &nextest)?);
    }
    print_line(format_args!(
        "cargo-nextest is not here; `cargo xtask setup --full` would build it"
    ));
    let options = ["--all-targets", "--no-fail-fast"];
    let test = [&["test"], WORKSPACE_FLAGS, &options].concat();
    let mut test = cargo::workspace_build(context, &test)?;
    let but_full = ["--", "--skip", "::full_"];
    run_parsed(test.args(but_full.iter().filter(|_| !full)))
}

/// Runs each fuzz target for [`FUZZ_SECONDS`]. Quick runs of them are unit tests.
pub(super) fn fuzz(context: StepContext<'_>) -> Result<TestCounts> {
    let options = ["--no-fail-fast", "--profile", "full"];
    let targets = ["-E", "test(/(^|::)fuzz_/)"];
    let nextest = [&["nextest", "run"], WORKSPACE_FLAGS, &options, &targets].concat();
    let mut nextest = cargo::workspace_build(context, &nextest)?;
    run_parsed(nextest.env("OSTLER_FUZZ_SECONDS", FUZZ_SECONDS))
}

/// Documents the programs, too, which `doc` leaves out: cargo checks every dependency for it.
pub(super) fn doc_all(context: StepContext<'_>) -> Result<TestCounts> {
    let doc = [&["doc"], WORKSPACE_FLAGS, &["--no-deps"]].concat();
    let mut doc = cargo::command(context, &doc);
    doc.env("RUSTDOCFLAGS", "-D warnings");
    run_counted(doc)
}

/// Builds all that the later steps run, with clippy's lints, so that nothing compiles beside them.
pub(super) fn build(context: StepContext<'_>) -> Result<TestCounts> {
    let options = ["--all-targets", "--no-run", "--quiet"];
    let test = [&["test"], WORKSPACE_FLAGS, &options].concat();
    run_counted(cargo::workspace_build(context, &test)?)
}

/// Builds the binary that ships.
pub(super) fn dist(context: StepContext<'_>) -> Result<TestCounts> {
    let dist = ["build", "--profile", "dist", "--package", "ostler-cli"];
    run_counted(cargo::command(context, &dist))
}

/// Tests the binary as clients see it, through the official MCP client. Tests wait more than they
/// compute: several run concurrently, the tests of a file in one process.
pub(super) fn python(context: StepContext<'_>) -> Result<TestCounts> {
    let parallel = ["-n", PYTHON_WORKERS, "--dist", "loadfile"];
    // Each worker imports every file: compiled once, by one of them, that takes a third of the time.
    let mut collection = pytest(context, "not full and not serial")?;
    collection.args(["--collect-only", "-qq"]);
    collection.stdout(Stdio::null()).status()?;
    run_with_retry(context, "not full and not serial", &parallel)
}

/// The Python tests that measure time or limits, each alone.
pub(super) fn measured(context: StepContext<'_>) -> Result<TestCounts> {
    let marks = match context.tier {
        Tier::Quick => "serial and not full",
        Tier::Full => "serial or full",
    };
    run_with_retry(context, marks, &[])
}

/// Runs Python tests, and retries the few that failed, one at a time: what passes then is counted
/// as flaky.
fn run_with_retry(context: StepContext<'_>, marks: &str, options: &[&str]) -> Result<TestCounts> {
    let first = run_parsed(pytest(context, marks)?.args(options))?;
    if !(1..=MAX_RETRIED).contains(&first.failed) {
        return Ok(first);
    }
    let failed = ["--last-failed", "--last-failed-no-failures", "none"];
    let second = run_parsed(pytest(context, marks)?.args(failed))?;
    Ok(first.after_retry(second))
}

/// The command for the Python tests with these marks.
fn pytest(context: StepContext<'_>, marks: &str) -> Result<Command> {
    let mut pytest = shell::command(context.workspace.python(), context.workspace.root());
    pytest.args(["-m", "pytest", "tests/python", "-m", marks]);
    let target = context.workspace.target();
    let cache = target.join("pytest-cache");
    pytest
        .args(["-o", &format!("cache_dir={}", cache.display())])
        .env("OSTLER_BIN", context.ostler())
        .env("OSTLER_SERVERS", setup::servers(context.workspace))
        .env("OSTLER_NODE", setup::node(context.workspace)?)
        .env_remove("PYTHONDONTWRITEBYTECODE")
        .env("PYTHONPYCACHEPREFIX", target.join("pycache"));
    Ok(pytest)
}

pub(super) fn chaos(context: StepContext<'_>) -> Result<TestCounts> {
    let (quick, full) = CHAOS_ROUNDS;
    let rounds = if context.tier == Tier::Full {
        full
    } else {
        quick
    };
    chaos::torture(&context.ostler(), rounds, None)
}

/// Without advisories: their database would have to be downloaded.
pub(super) fn deny(context: StepContext<'_>) -> Result<TestCounts> {
    run_counted(cargo::command(
        context,
        &["deny", "check", "bans", "licenses", "sources"],
    ))
}

/// Runs a step that passes or fails as a whole.
pub(super) fn run_counted(mut command: Command) -> Result<TestCounts> {
    Ok(TestCounts::from_success(
        shell::watch(&mut command, |_| {})?.success(),
    ))
}

/// Runs a step that counts tests; adds a failure if it exits with an error without naming any.
pub(super) fn run_parsed(command: &mut Command) -> Result<TestCounts> {
    let mut tally = TestCounts::default();
    let status = shell::watch(command, |line| {
        tally += TestCounts::parse_line(line).unwrap_or_default();
    })?;
    if !status.success() && tally.failed == 0 {
        tally.failed = 1;
    }
    Ok(tally)
}
