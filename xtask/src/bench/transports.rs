//! The same command over every MCP transport, and the size of the tool lists.

use std::net::SocketAddr;
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::baseline;
use super::context::BenchContext;
use super::report::{Promise, ReportRow};
use super::stats::{LatencySummary, median};
use crate::test_env::{HttpMcpClient, HttpServer, McpClient, ProtocolEra, TestEnv};

/// Calls of one round, one in flight.
const CALLS: usize = 200;
/// Calls of one round with several in flight, over all connections.
const FLOOD_CALLS: usize = 400;
/// The number of connections with calls in flight.
const WIDTH: usize = 8;
/// Bytes in a kilobyte.
const KILO: f64 = 1_000.0;
/// The profiles whose list is measured.
const PROFILES: [&str; 5] = ["core", "core,command", "command", "shell", "seeds"];

/// `echo hi` by `exec` over stdio, and over HTTP in both protocol eras, one in flight.
pub(super) fn one_in_flight(bench: &BenchContext) -> Result<Vec<ReportRow>> {
    let env = bench.idle_env()?;
    let server = HttpServer::start(&env)?;
    let mut stdio = McpClient::open(&env)?;
    let mut handshake = HttpMcpClient::open(server.address, ProtocolEra::Handshake)?;
    let mut stateless = HttpMcpClient::open(server.address, ProtocolEra::Stateless)?;
    let call = call_of(&env);
    let mut samples = [const { Vec::new() }; 4];
    for round in 0..=bench.rounds {
        let seen = [
            baseline::one_by_one(CALLS)?,
            stdio.flood(&call, CALLS, 1)?,
            handshake.one_by_one(&call, CALLS)?,
            stateless.one_by_one(&call, CALLS)?,
        ];
        if round > 0 {
            let pairs = samples.iter_mut().zip(seen);
            pairs.for_each(|(all, some)| all.extend(some));
        }
    }
    stdio.close()?;
    let [floor, stdio, handshake, stateless] =
        samples.map(|all| LatencySummary::from_samples(&all));
    let mut rows = Vec::new();
    for (name, seen) in [
        ("stdio", stdio),
        ("HTTP, 2025-11-25", handshake),
        ("HTTP, 2026-07-28", stateless),
    ] {
        rows.push(ReportRow::ratio(
            &format!("`exec` of `echo hi` over {name}, one in flight, p50"),
            seen.p50,
            floor.p50,
            "ms",
            Promise::NONE,
        ));
        rows.push(ReportRow::ratio(
            "the same, p99",
            seen.p99,
            floor.p99,
            "ms",
            Promise::NONE,
        ));
    }
    Ok(rows)
}

/// Eight connections at once, each with one call in flight.
pub(super) fn in_flight(bench: &BenchContext) -> Result<Vec<ReportRow>> {
    let env = bench.idle_env()?;
    let server = HttpServer::start(&env)?;
    let call = call_of(&env);
    let mut rates = [const { Vec::new() }; 3];
    for round in 0..=bench.rounds {
        let seen = [
            baseline::rate(FLOOD_CALLS, WIDTH)?,
            rate(server.address, ProtocolEra::Handshake, &call)?,
            rate(server.address, ProtocolEra::Stateless, &call)?,
        ];
        if round > 0 {
            let pairs = rates.iter_mut().zip(seen);
            pairs.for_each(|(all, one)| all.push(one));
        }
    }
    let [floor, handshake, stateless] = rates.map(|all| median(&all));
    let row = |name: &str, seen: f64| {
        let what = format!("calls per second over HTTP, {name}, 8 connections");
        ReportRow::ratio(&what, seen, floor, "/s", Promise::NONE)
    };
    Ok(vec![
        row("2025-11-25", handshake),
        row("2026-07-28", stateless),
    ])
}

/// The size of `tools/list` for every profile.
pub(super) fn tool_list_sizes(bench: &BenchContext) -> Result<Vec<ReportRow>> {
    let env = bench.started_env()?;
    let measure_size = |profile: &&str| {
        let mut mcp = McpClient::open_with(&env, &["mcp", "--tools", profile])?;
        let list = mcp.request("tools/list", &json!({}))?;
        mcp.close()?;
        let tools = list["tools"].as_array().context("no tools")?.len();
        let weight = f64::from(u32::try_from(list.to_string().len())?) / KILO;
        let what = format!("tools/list of profile {profile}, {tools} tools");
        let promise = match *profile {
            "core" => Promise::at_most(10.0, "≤ 10 kB"),
            _ => Promise::NONE,
        };
        Ok(ReportRow::absolute(&what, weight, "kB", promise))
    };
    PROFILES.iter().map(measure_size).collect()
}

fn rate(address: SocketAddr, era: ProtocolEra, call: &Value) -> Result<f64> {
    let mut clients = Vec::with_capacity(WIDTH);
    for _ in 0..WIDTH {
        clients.push(HttpMcpClient::open(address, era)?);
    }
    let begin = Instant::now();
    thread::scope(|scope| {
        let work = clients.iter_mut();
        let work = work.map(|it| scope.spawn(|| it.one_by_one(call, FLOOD_CALLS / WIDTH)));
        for worker in work.collect::<Vec<_>>() {
            let outcome = worker.join();
            ensure!(outcome.is_ok_and(|took| took.is_ok()), "a client failed");
        }
        Ok(())
    })?;
    Ok(f64::from(u32::try_from(FLOOD_CALLS)?) / begin.elapsed().as_secs_f64())
}

fn call_of(env: &TestEnv) -> Value {
    let words = ["/bin/sh", "-c", baseline::SCRIPT];
    json!({"name": "exec", "arguments": {"command": words, "cwd": env.work()}})
}
