//! The latency of one typed character's echo.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::super::context::BenchContext;
use super::super::line_process::{self, LineProcess};
use super::super::report::{Promise, ReportRow};
use super::super::stats::LatencySummary;
use super::peers;
use super::raw_pty::RawPty;
use crate::shell;
use crate::test_env::{McpClient, TestEnv};

/// Characters of one round.
const CHARACTERS: usize = 2_000;
/// Characters of one round over MCP.
const CALLS: usize = 500;
/// The same where each waits for a quiet of milliseconds.
const CALLS_WITH_QUIET: usize = 50;
/// The program that serves requests about terminals.
pub(super) fn start_library(bench: &BenchContext, env: &TestEnv) -> Result<LineProcess> {
    let mut command = line_process::program(bench, "terminals")?;
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
            seen.p50,
            floor.p50,
            "ms",
            Promise::at_most(2.0, "≤ 2× raw"),
        ),
        ReportRow::ratio(
            "the same, p99, against the raw p99",
            seen.p99,
            floor.p99,
            "ms",
            Promise::NONE,
        ),
        ReportRow::absolute(
            "the same, p99",
            seen.p99,
            "ms",
            Promise::at_most(1.0, "< 1 ms"),
        ),
    ];
    if let Some(peer) = peer {
        peer.close()?;
        let peer = LatencySummary::from_samples(&peers);
        rows.extend([
            ReportRow::ratio(
                "the same by node-pty (peer), p50, against raw",
                peer.p50,
                floor.p50,
                "ms",
                Promise::NONE,
            ),
            ReportRow::ratio(
                "the same by node-pty (peer), p99, against raw",
                peer.p99,
                floor.p99,
                "ms",
                Promise::NONE,
            ),
        ]);
    }
    Ok(rows)
}

/// The same by `pty_write` over MCP stdio, waiting for the character. Waiting for any output takes
/// the quiet after its first byte longer, by design: the rest of a word is to come with it.
pub(super) fn over_mcp(bench: &BenchContext) -> Result<Vec<ReportRow>> {
    let env = bench.started_env()?;
    let mut raw = RawPty::start(&mut shell::command("cat", &env.work()), true)?;
    let mut mcp = McpClient::open_with(&env, &["mcp", "--tools", "pty"])?;
    let session = echoing_session(&env, &mut mcp)?;
    let character = typing_call(&session, "pattern", "x");
    let any_output = typing_call(&session, "until", "output");
    let count = bench.count(CALLS);
    let (mut floors, mut ours, mut quiet) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..=bench.rounds {
        let (bare, through) = (raw.echo(count)?, mcp.flood(&character, count, 1)?);
        let waited = mcp.flood(&any_output, bench.count(CALLS_WITH_QUIET), 1)?;
        if round > 0 {
            floors.extend(bare);
            ours.extend(through);
            quiet.extend(waited);
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
            Promise::at_most(0.3, "≤ 0.3 ms"),
        ),
        ReportRow::absolute(
            "the same, p99",
            seen.p99,
            "ms",
            Promise::at_most(0.8, "≤ 0.8 ms"),
        ),
        ReportRow::absolute(
            "the same with the quiet after any output, p50",
            LatencySummary::from_samples(&quiet).p50,
            "ms",
            Promise::NONE,
        ),
        ReportRow::ratio(
            "the same, p50, against raw",
            seen.p50,
            floor.p50,
            "ms",
            Promise::NONE,
        ),
        ReportRow::ratio(
            "the same, p99, against the raw p99",
            seen.p99,
            floor.p99,
            "ms",
            Promise::NONE,
        ),
    ])
}

/// Starts a session that echoes over MCP; returns its id.
fn echoing_session(env: &TestEnv, mcp: &mut McpClient) -> Result<String> {
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
    Ok(id.to_owned())
}

/// The call that types one character into a session and waits for what the option names.
fn typing_call(session: &str, name: &str, value: &str) -> Value {
    let arguments = json!({"session": session, "text": "x", "enter": false, name: value});
    json!({"name": "pty_write", "arguments": arguments})
}
