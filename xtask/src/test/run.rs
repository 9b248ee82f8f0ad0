//! Runs the steps, keeps going after a failure, and says the sum.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use super::plan::{Context, STEPS, Step};
use super::tally::Tally;
use crate::setup::Tier;
use crate::ui::{Verdict, heading, say};
use crate::workspace::Workspace;

/// What a test run can be told.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Everything the issues name; the quick tier is what CI runs
    #[arg(long)]
    full: bool,
    /// Only this step; may be given more than once
    #[arg(long, value_name = "STEP")]
    only: Vec<String>,
}

/// How one step went.
struct Row {
    name: &'static str,
    tally: Tally,
    took: Duration,
}

/// Every step asked for, whatever the ones before it found.
pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<Verdict> {
    let tier = Tier::of(args.full);
    let mut rows = Vec::new();
    for step in chosen(args, tier)? {
        heading(step.name);
        rows.push(take(step, Context { workspace, tier }));
    }
    Ok(conclude(&rows))
}

fn chosen(args: &Args, tier: Tier) -> Result<Vec<&'static Step>> {
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
    let wanted = |step: &&Step| match args.only.as_slice() {
        [] => step.tier <= tier,
        only => only.iter().any(|name| name == step.name),
    };
    Ok(STEPS.iter().filter(wanted).collect())
}

fn take(step: &Step, context: Context<'_>) -> Row {
    let begin = Instant::now();
    let tally = (step.act)(context).unwrap_or_else(|error| {
        say(format_args!("{}: {error:#}", step.name));
        Tally::of(false)
    });
    Row {
        name: step.name,
        tally,
        took: begin.elapsed(),
    }
}

/// The table for people, and the one line for machines.
fn conclude(rows: &[Row]) -> Verdict {
    heading("result");
    let mut sum = Tally::default();
    for row in rows {
        let word = if row.tally.failed == 0 {
            "ok"
        } else {
            "FAILED"
        };
        let (passed, failed, took) = (row.tally.passed, row.tally.failed, row.took.as_secs_f64());
        say(format_args!(
            "{:<11} {word:<6} {took:>7.1} s {passed:>6} passed {failed:>4} failed",
            row.name
        ));
        sum += row.tally;
    }
    let flaky = match sum.flaky {
        0 => String::new(),
        flaky => format!(", {flaky} of them at the second attempt only"),
    };
    say(format_args!(
        "{} passed{flaky}, {} failed",
        sum.passed, sum.failed
    ));
    Verdict::of(sum.failed == 0)
}
