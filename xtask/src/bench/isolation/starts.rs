//! From the wish for `true` to its end, at each level.

use std::time::Duration;

use anyhow::Result;
use serde_json::json;

use super::super::orders::{self, Orders};
use super::super::report::{Limit, Row};
use super::super::run::Bench;
use super::super::stats::Summary;
use crate::lab::Mcp;

/// Starts of each kind in one round.
const STARTS: usize = 50;
/// How the sandbox's example program calls them; the first is the floor.
const KINDS: [&str; 5] = ["bare", "basic", "medium", "high", "bwrap"];
/// Levels through the daemon; the first is what the others are measured against.
const LEVELS: [&str; 3] = ["basic", "medium", "high"];
/// Nothing is promised: the figure is there to be seen.
const NO_PROMISE: (Limit, &str) = (Limit::AtMost(f64::INFINITY), "none");

/// The sandbox as a library: everything a level needs is made anew for every start.
pub(super) fn by_the_sandbox(bench: &Bench) -> Result<Vec<Row>> {
    let lab = bench.quiet_lab()?;
    let mut command = orders::example(bench, "ostler-sandbox", "starts")?;
    let mut program = Orders::start(command.arg(lab.work()))?;
    let count = bench.count(STARTS);
    let samples = interleaved(bench.rounds, KINDS, |kind| {
        program.ask(&format!("{kind} {count}"))
    })?;
    program.close()?;
    let [bare, basic, medium, high, bwrap] = samples.map(|list| Summary::of(&list));
    let added = high.p50 - bare.p50;
    let mut rows = Vec::new();
    for (name, seen) in [("basic", basic), ("medium", medium), ("high", high)] {
        rows.extend(against(
            &format!("start to end of `true`, {name}"),
            seen,
            bare,
        ));
    }
    rows.extend(against("the same by bwrap --unshare-all", bwrap, bare));
    rows.push(Row::absolute(
        "what level high adds to a bare start, p50",
        added,
        "ms",
        (Limit::AtMost(6.0), "≤ 6 ms"),
    ));
    rows.push(Row::ratio(
        "level high against bwrap --unshare-all, p50",
        (high.p50, bwrap.p50),
        "ms",
        (Limit::AtMost(1.0), "≤ bwrap"),
    ));
    Ok(rows)
}

/// The same wish of an MCP client on stdio, through the daemon, journal and all.
pub(super) fn over_mcp(bench: &Bench) -> Result<Vec<Row>> {
    let lab = bench.lab()?;
    let mut mcp = Mcp::open(&lab)?;
    let count = bench.count(STARTS);
    let samples = interleaved(bench.rounds, LEVELS, |level| {
        let arguments =
            json!({"command": "/bin/true", "directory": lab.work(), "isolation": level});
        let call = json!({"name": "command_execute", "arguments": arguments});
        mcp.flood(&call, count, 1)
    })?;
    mcp.close()?;
    let [basic, medium, high] = samples.map(|list| Summary::of(&list));
    let mut rows = Vec::new();
    for (name, seen) in [("medium", medium), ("high", high)] {
        rows.extend(against(
            &format!("`true` through MCP stdio, {name}"),
            seen,
            basic,
        ));
    }
    rows.push(Row::absolute(
        "what level high adds through MCP, p50",
        high.p50 - basic.p50,
        "ms",
        (Limit::AtMost(6.0), "≤ 6 ms"),
    ));
    Ok(rows)
}

/// Every kind once in each round, so that a noisy minute touches them all; the first round is
/// thrown away.
fn interleaved<const N: usize>(
    rounds: u32,
    kinds: [&str; N],
    mut ask: impl FnMut(&str) -> Result<Vec<Duration>>,
) -> Result<[Vec<Duration>; N]> {
    let mut samples = [const { Vec::new() }; N];
    for round in 0..=rounds {
        for (list, kind) in samples.iter_mut().zip(kinds) {
            let seen = ask(kind)?;
            if round > 0 {
                list.extend(seen);
            }
        }
    }
    Ok(samples)
}

fn against(what: &str, seen: Summary, floor: Summary) -> [Row; 2] {
    [
        Row::ratio(
            &format!("{what}, p50"),
            (seen.p50, floor.p50),
            "ms",
            NO_PROMISE,
        ),
        Row::ratio(
            &format!("{what}, p99"),
            (seen.p99, floor.p99),
            "ms",
            NO_PROMISE,
        ),
    ]
}
