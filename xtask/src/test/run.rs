//! Runs the steps, continues after a failure, and prints the totals.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use super::counts::TestCounts;
use super::plan::{STEPS, StepContext, TestStep};
use crate::console::{CheckResult, heading, print_line};
use crate::setup::Tier;
use crate::workspace::Workspace;

/// What a test run can be told.
#[derive(Debug, clap::Args)]
pub(crate) struct TestRunArgs {
    /// Everything the issues name; the quick tier is what CI runs
    #[arg(long)]
    full: bool,
    /// Only this step; may be given more than once
    #[arg(long, value_name = "STEP")]
    only: Vec<String>,
}

/// The result of a step.
struct StepResult {
    name: &'static str,
    tally: TestCounts,
    duration: Duration,
}

/// Runs every requested step, whatever the result of earlier ones.
pub(crate) fn run(workspace: &Workspace, args: &TestRunArgs) -> Result<CheckResult> {
    let tier = Tier::of(args.full);
    let mut rows = Vec::new();
    for step in select_steps(args, tier)? {
        heading(step.name);
        rows.push(run_step(step, StepContext { workspace, tier }));
    }
    Ok(summarize(&rows))
}

fn select_steps(args: &TestRunArgs, tier: Tier) -> Result<Vec<&'static TestStep>> {
    let names: Vec<&str> = STEPS.iter().map(|step| step.name).collect();
    if let Some(unknown) = args
        .only
        .iter()
        .find(|name| !names.contains(&name.as_str()))
    {
        bail!(
            "no step is called {unknown}; there are {}",
            names.join(", ")
        );
    }
    let is_selected = |step: &&TestStep| match args.only.as_slice() {
        [] => step.tier <= tier,
        only => only.iter().any(|name| name == step.name),
    };
    Ok(STEPS.iter().filter(is_selected).collect())
}

fn run_step(step: &TestStep, context: StepContext<'_>) -> StepResult {
    let begin = Instant::now();
    let tally = (step.run)(context).unwrap_or_else(|error| {
        print_line(format_args!("{}: {error:#}", step.name));
        TestCounts::from_success(false)
    });
    StepResult {
        name: step.name,
        tally,
        duration: begin.elapsed(),
    }
}

/// Prints the table for people, and one line for programs.
fn summarize(rows: &[StepResult]) -> CheckResult {
    heading("result");
    let mut sum = TestCounts::default();
    for row in rows {
        let word = if row.tally.failed == 0 {
            "ok"
        } else {
            "FAILED"
        };
        let (passed, failed, took) = (
            row.tally.passed,
            row.tally.failed,
            row.duration.as_secs_f64(),
        );
        print_line(format_args!(
            "{:<11} {word:<6} {took:>7.1} s {passed:>6} passed {failed:>4} failed",
            row.name
        ));
        sum += row.tally;
    }
    let flaky = match sum.flaky {
        0 => String::new(),
        flaky => format!(", {flaky} of them at the second attempt only"),
    };
    print_line(format_args!(
        "{} passed{flaky}, {} failed",
        sum.passed, sum.failed
    ));
    CheckResult::from_success(sum.failed == 0)
}
