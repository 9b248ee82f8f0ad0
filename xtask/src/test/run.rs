//! Runs the steps, continues after a failure, and prints the totals.

use std::panic::{self, AssertUnwindSafe};
use std::sync::mpsc::{self, Sender};
use std::thread::{self, Scope};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use super::plan::{STEPS, StepContext, TestStep};
use super::schedule::Schedule;
use super::tmpfs;
use crate::console::{self, CheckResult, heading, print_line};
use crate::setup::Tier;
use crate::test_counts::TestCounts;
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
    /// The end of its output if it failed: other steps have printed since, and CI shows the end of
    /// a log.
    failure: Option<Vec<String>>,
}

/// Runs every requested step, whatever the result of earlier ones.
pub(crate) fn run(workspace: &Workspace, args: &TestRunArgs) -> Result<CheckResult> {
    let tier = Tier::of(args.full);
    let steps = select_steps(args, tier)?;
    tmpfs::enter(workspace)?;
    let begin = Instant::now();
    let mut rows = run_all(&steps, StepContext { workspace, tier });
    rows.sort_by_key(|row| steps.iter().position(|step| step.name == row.name));
    Ok(summarize(&rows, begin.elapsed()))
}

/// Runs the steps as the schedule says, each in a thread of its own.
fn run_all(steps: &[&TestStep], context: StepContext<'_>) -> Vec<StepResult> {
    let mut schedule = Schedule::new(steps.to_vec());
    let mut rows = Vec::new();
    let (ended, ends) = mpsc::channel();
    thread::scope(|scope| {
        while !schedule.is_done() {
            for step in schedule.begin_ready() {
                heading(step.name);
                spawn_step(scope, step, context, ended.clone());
            }
            let Ok(row) = ends.recv() else {
                break;
            };
            schedule.end(row.name);
            rows.push(row);
        }
    });
    rows
}

fn spawn_step<'scope, 'env: 'scope>(
    scope: &'scope Scope<'scope, 'env>,
    step: &'env TestStep,
    context: StepContext<'env>,
    ended: Sender<StepResult>,
) {
    scope.spawn(move || {
        console::set_line_prefix(step.name);
        let row = run_step(step, context);
        let _receiver_waits = ended.send(row);
    });
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
    let run = AssertUnwindSafe(|| (step.run)(context));
    let result = panic::catch_unwind(run).unwrap_or_else(|_| bail!("the step panicked"));
    let tally = result.unwrap_or_else(|error| {
        print_line(format_args!("{error:#}"));
        TestCounts::from_success(false)
    });
    StepResult {
        name: step.name,
        tally,
        duration: begin.elapsed(),
        failure: (tally.failed > 0).then(console::last_lines),
    }
}

/// Prints the end of each failed step, the table for people, and one line for programs.
fn summarize(rows: &[StepResult], elapsed: Duration) -> CheckResult {
    for (row, lines) in rows
        .iter()
        .filter_map(|row| Some((row, row.failure.as_ref()?)))
    {
        heading(&format!("the end of {}, which failed", row.name));
        for line in lines {
            print_line(format_args!("{line}"));
        }
    }
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
    print_line(format_args!("{:.0} s in all", elapsed.as_secs_f64()));
    print_line(format_args!(
        "{} passed{flaky}, {} failed",
        sum.passed, sum.failed
    ));
    CheckResult::from_success(sum.failed == 0)
}
