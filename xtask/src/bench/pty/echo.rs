//! The latency of one typed character's echo.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::super::line_process::{self, LineProcess};
use super::super::report::{ReportRow, Threshold};
use super::super::run::BenchContext;
use super::super::stats::LatencySummary;
use super::peers;
use super::raw_pty::RawPty;
use crate::shell;
use crate::test_env::{McpClient, TestEnv};

/// Characters of one round.
const CHARACTERS: usize = 2_000;
/// Characters of one round over MCP.
const CALLS: usize = 500;
/// No promise.
const NO_PROMISE: (Threshold, &str) = (Threshold::AtMost(f64::INFINITY), "none");

/// The example program of the library that serves requests about terminals.
pub(super) fn start_library(bench: &BenchContext, env: &TestEnv) -> Result<LineProcess> {
    let mut command = line_process::example(bench, "ostler", "terminals")?;
    command
        .arg(bench.ostler())
        .arg(env.path().join("embedded"))
        // Without the user's own settings.
        .env("HOME", env.path().join("home"))
        .current_dir(env.work());
    LineProcess::start(&mut command)
}

/// The engine as a library, compared with the raw terminal and the peer.
pub(super) fn in_process(bench: &BenchContext) -> Result<Vec<ReportRow>> {
    let env = bench.idle_env()?;
    let mut raw = RawPty::start(&mut shell::command("cat", &env.work()), true)?;
    let mut library = start_library(bench, &env)?;
    let mut peer = peers::open(bench)?;
    let count = bench.count(CHARACTERS);
    let request = format!("echo {count}");
    let (mut floors, mut ours, mut peers) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..=bench.rounds {
        let (bare, through) = (raw.echo(count)?, library.request(&request)?);
        let theirs = peer
            .as_mut()
            .map(|peer| peer.request(&request))
            .transpose()?;
        if round > 0 {
            floors.extend(bare);
            ours.extend(through);
            peers.extend(theirs.unwrap_or_default());
        }
    }
    raw.end()?;
    library.close()?;
    let (floor, seen) = (
        LatencySummary::from_samples(&floors),
        LatencySummary::from_samples(&ours),
    );
    let mut rows = vec![
        ReportRow::ratio(
            "echo of a character, engine in process, p50",
            (seen.p50, floor.p50),
            "ms",
            (Threshold::AtMost(2.0), "≤ 2× raw"),
        ),
        ReportRow::ratio(
            "the same, p99, against the raw p99",
            (seen.p99, floor.p99),
            "ms",
            NO_PROMISE,
        ),
        ReportRow::absolute(
            "the same, p99",
            seen.p99,
            "ms",
            (Threshold::AtMost(1.0), "< 1 ms"),
        ),
    ];
    if let Some(peer) = peer {
        peer.close()?;
        let peer = LatencySummary::from_samples(&peers);
        rows.extend([
            ReportRow::ratio(
                "the same by node-pty (peer), p50, against raw",
                (peer.p50, floor.p50),
                "ms",
                NO_PROMISE,
            ),
            ReportRow::ratio(
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
pub(super) fn over_mcp(bench: &BenchContext) -> Result<Vec<ReportRow>> {
    let env = bench.started_env()?;
    let mut raw = RawPty::start(&mut shell::command("cat", &env.work()), true)?;
    let mut mcp = McpClient::open_with(&env, &["mcp", "--tools", "pty"])?;
    let call = typing_call(&env, &mut mcp)?;
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
    let (floor, seen) = (
        LatencySummary::from_samples(&floors),
        LatencySummary::from_samples(&ours),
    );
    Ok(vec![
        ReportRow::absolute(
            "echo of a character over MCP stdio (`pty_write`), p50",
            seen.p50,
            "ms",
            (Threshold::AtMost(0.3), "≤ 0.3 ms"),
        ),
        ReportRow::absolute(
            "the same, p99",
            seen.p99,
            "ms",
            (Threshold::AtMost(0.8), "≤ 0.8 ms"),
        ),
        ReportRow::ratio(
            "the same, p50, against raw",
            (seen.p50, floor.p50),
            "ms",
            NO_PROMISE,
        ),
        ReportRow::ratio(
            "the same, p99, against the raw p99",
            (seen.p99, floor.p99),
            "ms",
            NO_PROMISE,
        ),
    ])
}

/// Starts a session that echoes over MCP; returns the call that types one character into it.
fn typing_call(env: &TestEnv, mcp: &mut McpClient) -> Result<Value> {
    let script = "stty raw -echo; echo ready; exec cat";
    let start = json!({"command": ["/bin/sh", "-c", script], "cwd": env.work()});
    let started = mcp.request(
        "tools/call",
        &json!({"name": "pty_start", "arguments": start}),
    )?;
    let id = started["_meta"]["ostler/result"]["session"].as_str();
    let id = id.with_context(|| format!("a start without a session: {started}"))?;
    let ready = json!({"until": "pattern", "pattern": "ready", "at_most_ms": 10_000});
    let waited = env.request(
        "POST",
        &format!("/api/v1/executions/{id}/wait"),
        Some(&ready),
    )?;
    ensure!(waited["why"].to_string().contains("pattern"), "{waited}");
    let arguments = json!({"session": id, "text": "x", "enter": false, "until": "output"});
    Ok(json!({"name": "pty_write", "arguments": arguments}))
}
