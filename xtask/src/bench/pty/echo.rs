//! One character typed, and its echo.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::super::orders::{self, Orders};
use super::super::report::{Limit, Row};
use super::super::run::Bench;
use super::super::stats::Summary;
use super::peer;
use super::raw::Raw;
use crate::lab::{Lab, Mcp};
use crate::sh;

/// Characters of one round.
const CHARACTERS: usize = 2_000;
/// Characters of one round over MCP.
const CALLS: usize = 500;
/// A figure without a promise.
const NO_PROMISE: (Limit, &str) = (Limit::AtMost(f64::INFINITY), "none");

/// The example of the library that answers orders about terminals.
pub(super) fn library(bench: &Bench, lab: &Lab) -> Result<Orders> {
    let mut command = orders::example(bench, "ostler", "terminals")?;
    command
        .arg(bench.ostler())
        .arg(lab.path().join("embedded"))
        // Nobody's own settings.
        .env("HOME", lab.path().join("home"))
        .current_dir(lab.work());
    Orders::start(&mut command)
}

/// The engine as a library against the bare terminal and the peer.
pub(super) fn in_process(bench: &Bench) -> Result<Vec<Row>> {
    let lab = bench.quiet_lab()?;
    let mut raw = Raw::start(&mut sh::command("cat", &lab.work()), true)?;
    let mut library = library(bench, &lab)?;
    let mut peer = peer::open(bench)?;
    let count = bench.count(CHARACTERS);
    let ask = format!("echo {count}");
    let (mut floors, mut ours, mut peers) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..=bench.rounds {
        let (bare, through) = (raw.echo(count)?, library.ask(&ask)?);
        let theirs = peer.as_mut().map(|peer| peer.ask(&ask)).transpose()?;
        if round > 0 {
            floors.extend(bare);
            ours.extend(through);
            peers.extend(theirs.unwrap_or_default());
        }
    }
    raw.end()?;
    library.close()?;
    let (floor, seen) = (Summary::of(&floors), Summary::of(&ours));
    let mut rows = vec![
        Row::ratio(
            "echo of a character, engine in process, p50",
            (seen.p50, floor.p50),
            "ms",
            (Limit::AtMost(2.0), "≤ 2× raw"),
        ),
        Row::ratio(
            "the same, p99, against the raw p99",
            (seen.p99, floor.p99),
            "ms",
            NO_PROMISE,
        ),
        Row::absolute(
            "the same, p99",
            seen.p99,
            "ms",
            (Limit::AtMost(1.0), "< 1 ms"),
        ),
    ];
    if let Some(peer) = peer {
        peer.close()?;
        let peer = Summary::of(&peers);
        rows.extend([
            Row::ratio(
                "the same by node-pty (peer), p50, against raw",
                (peer.p50, floor.p50),
                "ms",
                NO_PROMISE,
            ),
            Row::ratio(
                "the same by node-pty (peer), p99, against raw",
                (peer.p99, floor.p99),
                "ms",
                NO_PROMISE,
            ),
        ]);
    }
    Ok(rows)
}

/// The same by `pty_write` over MCP stdio.
pub(super) fn over_mcp(bench: &Bench) -> Result<Vec<Row>> {
    let lab = bench.lab()?;
    let mut raw = Raw::start(&mut sh::command("cat", &lab.work()), true)?;
    let mut mcp = Mcp::open_with(&lab, &["mcp", "--tools", "pty"])?;
    let call = typing(&lab, &mut mcp)?;
    let count = bench.count(CALLS);
    let (mut floors, mut ours) = (Vec::new(), Vec::new());
    for round in 0..=bench.rounds {
        let (bare, through) = (raw.echo(count)?, mcp.flood(&call, count, 1)?);
        if round > 0 {
            floors.extend(bare);
            ours.extend(through);
        }
    }
    raw.end()?;
    mcp.close()?;
    let (floor, seen) = (Summary::of(&floors), Summary::of(&ours));
    Ok(vec![
        Row::absolute(
            "echo of a character over MCP stdio (`pty_write`), p50",
            seen.p50,
            "ms",
            (Limit::AtMost(0.3), "≤ 0.3 ms"),
        ),
        Row::absolute(
            "the same, p99",
            seen.p99,
            "ms",
            (Limit::AtMost(0.8), "≤ 0.8 ms"),
        ),
        Row::ratio(
            "the same, p50, against raw",
            (seen.p50, floor.p50),
            "ms",
            NO_PROMISE,
        ),
        Row::ratio(
            "the same, p99, against the raw p99",
            (seen.p99, floor.p99),
            "ms",
            NO_PROMISE,
        ),
    ])
}

/// A session that echoes, begun over MCP; the call that types one character into it.
fn typing(lab: &Lab, mcp: &mut Mcp) -> Result<Value> {
    let script = "stty raw -echo; echo ready; exec cat";
    let start = json!({"command": ["/bin/sh", "-c", script], "cwd": lab.work()});
    let started = mcp.request(
        "tools/call",
        &json!({"name": "pty_start", "arguments": start}),
    )?;
    let id = started["_meta"]["ostler/result"]["session"].as_str();
    let id = id.with_context(|| format!("a start without a session: {started}"))?;
    let ready = json!({"until": "pattern", "pattern": "ready", "at_most_ms": 10_000});
    let waited = lab.ask(
        "POST",
        &format!("/api/v1/executions/{id}/wait"),
        Some(&ready),
    )?;
    ensure!(waited["why"].to_string().contains("pattern"), "{waited}");
    let arguments = json!({"session": id, "text": "x", "enter": false, "until": "output"});
    Ok(json!({"name": "pty_write", "arguments": arguments}))
}
