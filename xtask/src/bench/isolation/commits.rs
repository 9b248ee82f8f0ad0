//! The transactional workspace: what a start under an overlay costs, and its commit.

use std::time::Duration;

use anyhow::{Context as _, Result};

use super::super::orders::{self, Orders};
use super::super::report::{Limit, Row};
use super::super::run::Bench;
use super::super::stats::Summary;

/// Files that are committed.
const FILES: usize = 10_000;
/// How the example program calls what is measured; the last is the floor.
const KINDS: [&str; 4] = ["prepare", "changes", "commit", "copy"];

/// Ten thousand files, half of them new and half changed.
pub(super) fn ten_thousand_files(bench: &Bench) -> Result<Vec<Row>> {
    let lab = bench.quiet_lab()?;
    let mut command = orders::example(bench, "ostler-sandbox", "commits")?;
    let mut program = Orders::start(command.arg(lab.work()))?;
    let files = bench.count(FILES);
    let mut samples: [Vec<Duration>; 4] = [const { Vec::new() }; 4];
    for round in 0..=bench.rounds {
        for (list, kind) in samples.iter_mut().zip(KINDS) {
            let seen = program.ask(&format!("{kind} {files}"))?;
            if round > 0 {
                list.push(*seen.first().context("no duration")?);
            }
        }
    }
    program.close()?;
    let [prepare, changes, commit, copy] = samples.map(|list| Summary::of(&list).p50);
    let row = |what: &str, seen: f64| {
        let none = (Limit::AtMost(f64::INFINITY), "none");
        Row::ratio(what, (seen, copy), "ms", none)
    };
    Ok(vec![
        row(
            &format!("commit of {files} files, against copying them"),
            commit,
        ),
        row("listing the same changes", changes),
        row("writing down what the workspace held at the start", prepare),
    ])
}
