//! What each step does.

use std::process::Command;

use anyhow::Result;

use super::plan::Context;
use super::tally::Tally;
use crate::setup::Tier;
use crate::ui::{Verdict, say};
use crate::{chaos, setup, sh, tidy};

/// What every step compiles: with the same packages and features, cargo compiles nothing twice.
/// No code is there only without the feature.
const WHOLE: &[&str] = &[
    "--workspace",
    "--features",
    "ostler-server/conformance-fixtures",
];
/// Python tests that run at a time.
const PYTHON_WORKERS: &str = "2";
/// More failures than this are no accident, and are not tried again.
const MOST_RETRIED: u64 = 10;
/// How long each fuzz target goes on in the full tier, in seconds.
const FUZZ_SECONDS: &str = "600";
/// Rounds of chaos in each tier.
const CHAOS_ROUNDS: (u32, u32) = (20, 200);

pub(super) fn setup(context: Context<'_>) -> Result<Tally> {
    let args = setup::Args {
        full: context.tier == Tier::Full,
    };
    setup::run(context.workspace, &args).map(counted)
}

pub(super) fn tidy(context: Context<'_>) -> Result<Tally> {
    tidy::run(context.workspace, &tidy::Args {}).map(counted)
}

fn counted(verdict: Verdict) -> Tally {
    Tally::of(verdict == Verdict::Holds)
}

pub(super) fn fmt(context: Context<'_>) -> Result<Tally> {
    whole(cargo(context, &["fmt", "--all", "--check"]))
}

pub(super) fn clippy(context: Context<'_>) -> Result<Tally> {
    whole(cargo(
        context,
        &[
            &["clippy"],
            WHOLE,
            &["--all-targets", "--", "-D", "warnings"],
        ]
        .concat(),
    ))
}

/// Through nextest, or through cargo's own runner where nextest is not here. Tests that only
/// the full tier runs have names that begin with `full_`.
pub(super) fn unit(context: Context<'_>) -> Result<Tally> {
    let full = context.tier == Tier::Full;
    if sh::capture(&mut cargo(context, &["nextest", "--version"])).is_ok() {
        let profile = if full { "full" } else { "default" };
        let how = ["--no-fail-fast", "--profile", profile];
        let nextest = [&["nextest", "run"], WHOLE, &how].concat();
        return each(&mut cargo(context, &nextest));
    }
    say(format_args!(
        "cargo-nextest is not here; `cargo xtask setup --full` would build it"
    ));
    let how = ["--all-targets", "--no-fail-fast"];
    let mut test = cargo(context, &[&["test"], WHOLE, &how].concat());
    let but_full = ["--", "--skip", "::full_"];
    each(test.args(but_full.iter().filter(|_| !full)))
}

/// Each fuzz target for [`FUZZ_SECONDS`]. Quick runs of them are unit tests.
pub(super) fn fuzz(context: Context<'_>) -> Result<Tally> {
    let how = ["--no-fail-fast", "--profile", "full"];
    let targets = ["-E", "test(/(^|::)fuzz_/)"];
    let nextest = [&["nextest", "run"], WHOLE, &how, &targets].concat();
    each(cargo(context, &nextest).env("OSTLER_FUZZ_SECONDS", FUZZ_SECONDS))
}

pub(super) fn doctest(context: Context<'_>) -> Result<Tally> {
    let how = ["--doc", "--no-fail-fast"];
    each(&mut cargo(context, &[&["test"], WHOLE, &how].concat()))
}

pub(super) fn doc(context: Context<'_>) -> Result<Tally> {
    let mut doc = cargo(context, &[&["doc"], WHOLE, &["--no-deps"]].concat());
    doc.env("RUSTDOCFLAGS", "-D warnings");
    whole(doc)
}

/// What the steps after it run, and what ships where that is tested.
pub(super) fn build(context: Context<'_>) -> Result<Tally> {
    let run = ["--bin", "ostler", "--example", "conformance_server"];
    let mut tally = whole(cargo(context, &[&["build"], WHOLE, &run].concat()))?;
    if context.tier == Tier::Full {
        let ships = ["build", "--release", "--package", "ostler-cli"];
        tally += whole(cargo(context, &ships))?;
    }
    Ok(tally)
}

/// The binary as clients see it, through the official MCP client. Tests wait more than they work:
/// several run at a time, a file of them in one process; then those that measure, each alone.
pub(super) fn python(context: Context<'_>) -> Result<Tally> {
    let several = ["-n", PYTHON_WORKERS, "--dist", "loadfile"];
    let mut tally = twice(context, "not full and not serial", &several)?;
    let alone = match context.tier {
        Tier::Quick => "serial and not full",
        Tier::Full => "serial or full",
    };
    tally += twice(context, alone, &[])?;
    Ok(tally)
}

/// Python tests, and a second attempt, one at a time, at the few that failed: what passes then
/// is counted as flaky.
fn twice(context: Context<'_>, marks: &str, how: &[&str]) -> Result<Tally> {
    let first = each(pytest(context, marks)?.args(how))?;
    if !(1..=MOST_RETRIED).contains(&first.failed) {
        return Ok(first);
    }
    let failed = ["--last-failed", "--last-failed-no-failures", "none"];
    let second = each(pytest(context, marks)?.args(failed))?;
    Ok(first.after_retry(second))
}

/// The Python tests with these marks.
fn pytest(context: Context<'_>, marks: &str) -> Result<Command> {
    let mut pytest = sh::command(context.workspace.python(), context.workspace.root());
    pytest.args(["-m", "pytest", "tests/python", "-m", marks]);
    let cache = context.workspace.target().join("pytest-cache");
    pytest
        .args(["-o", &format!("cache_dir={}", cache.display())])
        .env("OSTLER_BIN", context.ostler())
        .env("OSTLER_SERVERS", setup::servers(context.workspace))
        .env("OSTLER_NODE", setup::node(context.workspace)?)
        .env("PYTHONDONTWRITEBYTECODE", "1");
    Ok(pytest)
}

pub(super) fn chaos(context: Context<'_>) -> Result<Tally> {
    let (quick, full) = CHAOS_ROUNDS;
    let rounds = if context.tier == Tier::Full {
        full
    } else {
        quick
    };
    chaos::torture(&context.ostler(), rounds, None)
}

/// Not the advisories: their database would have to be fetched.
pub(super) fn deny(context: Context<'_>) -> Result<Tally> {
    whole(cargo(
        context,
        &["deny", "check", "bans", "licenses", "sources"],
    ))
}

/// Cargo in the workspace, with our own tools on its path.
pub(super) fn cargo(context: Context<'_>, args: &[&str]) -> Command {
    let workspace = context.workspace;
    let mut cargo = sh::command("cargo", workspace.root());
    let tools = workspace.tools().join("bin");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::split_paths(&path).chain([tools]);
    if let Ok(path) = std::env::join_paths(path) {
        cargo.env("PATH", path);
    }
    cargo.args(args);
    cargo
}

/// A step that holds or does not.
pub(super) fn whole(mut command: Command) -> Result<Tally> {
    Ok(Tally::of(sh::watch(&mut command, |_| {})?.success()))
}

/// A step that counts what it ran; one failure more when it ended badly without naming any.
pub(super) fn each(command: &mut Command) -> Result<Tally> {
    let mut tally = Tally::default();
    let status = sh::watch(command, |line| {
        tally += Tally::read(line).unwrap_or_default();
    })?;
    if !status.success() && tally.failed == 0 {
        tally.failed = 1;
    }
    Ok(tally)
}
