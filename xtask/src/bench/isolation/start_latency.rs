//! The time from the request for `true` to its end, at each level.

use std::time::Duration;

use anyhow::Result;
use serde_json::json;

use super::super::context::BenchContext;
use super::super::line_process::{self, LineProcess};
use super::super::report::{Promise, ReportRow};
use super::super::stats::LatencySummary;
use crate::test_env::McpClient;

/// Starts of each kind in one round.
const STARTS: usize = 50;
/// The names of the measurements in the program; the first is the baseline.
const KINDS: [&str; 5] = ["bare", "basic", "medium", "high", "bwrap"];
/// The levels through the daemon; the first is the baseline.
const LEVELS: [&str; 3] = ["basic", "medium", "high"];
/// No promise: the figure is informative.
/// The sandbox as a library: everything that a level needs is created for every start.
pub(super) fn by_the_sandbox(bench: &BenchContext) -> Result<Vec<ReportRow>> {
    let env = bench.idle_env()?;
    let mut command = line_process::program(bench, "isolated_starts")?;
    let mut program = LineProcess::start(command.arg(env.work()))?;
    let count = bench.count(STARTS);
    let samples = interleaved(bench.rounds, KINDS, |kind| {
        program.request(&format!("{kind} {count}"))
    })?;
    program.close()?;
    let [bare, basic, medium, high, bwrap] =
        samples.map(|list| LatencySummary::from_samples(&list));
    let added = high.p50 - bare.p50;
    let mut rows = Vec::new();
    for (name, seen) in [("basic", basic), ("medium", medium), ("high", high)] {
        rows.extend(versus_baseline(
            &format!("start to end of `true`, {name}"),
            seen,
            bare,
        ));
    }
    rows.extend(versus_baseline(
        "the same by bwrap --unshare-all",
        bwrap,
        bare,
    ));
    rows.push(ReportRow::absolute(
        "what level high adds to a bare start, p50",
        added,
        "ms",
        Promise::at_most(6.0, "≤ 6 ms"),
    ));
    rows.push(ReportRow::ratio(
        "level high against bwrap --unshare-all, p50",
        high.p50,
        bwrap.p50,
        "ms",
        Promise::at_most(1.0, "≤ bwrap"),
    ));
    Ok(rows)
}

/// The same request of an MCP client on stdio, through the daemon, with its journal.
pub(super) fn over_mcp(bench: &BenchContext) -> Result<Vec<ReportRow>> {
    let env = bench.started_env()?;
    let mut mcp = McpClient::open(&env)?;
    let count = bench.count(STARTS);
    let samples = interleaved(bench.rounds, LEVELS, |level| {
        let arguments =
            json!({"command": "/bin/true", "directory": env.work(), "isolation": level});
        let call = json!({"name": "command_execute", "arguments": arguments});
        mcp.flood(&call, count, 1)
    })?;
    mcp.close()?;
    let [basic, medium, high] = samples.map(|list| LatencySummary::from_samples(&list));
    let mut rows = Vec::new();
    for (name, seen) in [("medium", medium), ("high", high)] {
        rows.extend(versus_baseline(
            &format!("`true` through MCP stdio, {name}"),
            seen,
            basic,
        ));
    }
    rows.push(ReportRow::absolute(
        "what level high adds through MCP, p50",
        high.p50 - basic.p50,
        "ms",
        Promise::at_most(6.0, "≤ 6 ms"),
    ));
    Ok(rows)
}

/// Runs every kind once in each round, so that noise affects all of them; the first round is
/// discarded.
fn interleaved<const N: usize>(
    rounds: u32,
    kinds: [&str; N],
    mut measure: impl FnMut(&str) -> Result<Vec<Duration>>,
) -> Result<[Vec<Duration>; N]> {
    let mut samples = [const { Vec::new() }; N];
    for round in 0..=rounds {
        for (list, kind) in samples.iter_mut().zip(kinds) {
            let durations = measure(kind)?;
            if round > 0 {
                list.extend(durations);
            }
        }
    }
    Ok(samples)
}

fn versus_baseline(what: &str, seen: LatencySummary, floor: LatencySummary) -> [ReportRow; 2] {
    [
        ReportRow::ratio(
            &format!("{what}, p50"),
            seen.p50,
            floor.p50,
            "ms",
            Promise::NONE,
        ),
        ReportRow::ratio(
            &format!("{what}, p99"),
            seen.p99,
            floor.p99,
            "ms",
            Promise::NONE,
        ),
    ]
}
