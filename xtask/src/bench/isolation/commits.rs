//! The overlay of a workspace: the cost of a start with one, and of its commit.

use std::time::Duration;

use anyhow::{Context as _, Result};

use super::super::context::BenchContext;
use super::super::line_process::{self, LineProcess};
use super::super::report::{Promise, ReportRow};
use super::super::stats::LatencySummary;

/// The number of files that are committed.
const FILES: usize = 10_000;
/// The names of the measurements in the program; the last is the baseline.
const KINDS: [&str; 4] = ["prepare", "changes", "commit", "copy"];

/// Ten thousand files, half of them new and half changed.
pub(super) fn ten_thousand_files(bench: &BenchContext) -> Result<Vec<ReportRow>> {
    let env = bench.idle_env()?;
    let mut command = line_process::program(bench, "overlay_commits")?;
    let mut program = LineProcess::start(command.arg(env.work()))?;
    let files = bench.count(FILES);
    let mut samples: [Vec<Duration>; 4] = [const { Vec::new() }; 4];
    for round in 0..=bench.rounds {
        for (list, kind) in samples.iter_mut().zip(KINDS) {
            let seen = program.request(&format!("{kind} {files}"))?;
            if round > 0 {
                list.push(*seen.first().context("no duration")?);
            }
        }
    }
    program.close()?;
    let [prepare, changes, commit, copy] =
        samples.map(|list| LatencySummary::from_samples(&list).p50);
    let row = |what: &str, seen: f64| ReportRow::ratio(what, seen, copy, "ms", Promise::NONE);
    Ok(vec![
        row(
            &format!("commit of {files} files, against copying them"),
            commit,
        ),
        row("listing the same changes", changes),
        row("writing down what the workspace held at the start", prepare),
    ])
}
