//! The same command through every MCP transport, and what the lists of tools weigh.

use std::net::SocketAddr;
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::floor;
use super::report::{Limit, Row};
use super::run::Bench;
use super::stats::{Summary, median};
use crate::lab::{Era, HttpMcp, Lab, Mcp, Served};

/// Calls of one round, one in flight.
const CALLS: usize = 200;
/// Calls of one round with several in flight, over all connections.
const FLOOD_CALLS: usize = 400;
/// Connections of the flood.
const WIDTH: usize = 8;
/// Bytes in a kilobyte.
const KILO: f64 = 1_000.0;
/// Every profile whose list is weighed.
const PROFILES: [&str; 5] = ["core", "core,command", "command", "shell", "seeds"];

/// `echo hi` by `exec` over stdio, and over HTTP in both eras, one in flight.
pub(super) fn one_in_flight(bench: &Bench) -> Result<Vec<Row>> {
    let lab = bench.quiet_lab()?;
    let served = Served::start(&lab)?;
    let mut stdio = Mcp::open(&lab)?;
    let mut handshake = HttpMcp::open(served.address, Era::Handshake)?;
    let mut stateless = HttpMcp::open(served.address, Era::Stateless)?;
    let call = call_of(&lab);
    let mut samples = [const { Vec::new() }; 4];
    for round in 0..=bench.rounds {
        let seen = [
            floor::one_by_one(CALLS)?,
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
    let [floor, stdio, handshake, stateless] = samples.map(|all| Summary::of(&all));
    let mut rows = Vec::new();
    for (name, seen) in [
        ("stdio", stdio),
        ("HTTP, 2025-11-25", handshake),
        ("HTTP, 2026-07-28", stateless),
    ] {
        rows.push(Row::ratio(
            &format!("`exec` of `echo hi` over {name}, one in flight, p50"),
            (seen.p50, floor.p50),
            "ms",
            (Limit::AtLeast(0.0), "none"),
        ));
        rows.push(Row::ratio(
            "the same, p99",
            (seen.p99, floor.p99),
            "ms",
            (Limit::AtLeast(0.0), "none"),
        ));
    }
    Ok(rows)
}

/// Eight connections at once, each with one call in flight.
pub(super) fn in_flight(bench: &Bench) -> Result<Vec<Row>> {
    let lab = bench.quiet_lab()?;
    let served = Served::start(&lab)?;
    let call = call_of(&lab);
    let mut rates = [const { Vec::new() }; 3];
    for round in 0..=bench.rounds {
        let seen = [
            floor::rate(FLOOD_CALLS, WIDTH)?,
            rate(served.address, Era::Handshake, &call)?,
            rate(served.address, Era::Stateless, &call)?,
        ];
        if round > 0 {
            let pairs = rates.iter_mut().zip(seen);
            pairs.for_each(|(all, one)| all.push(one));
        }
    }
    let [floor, handshake, stateless] = rates.map(|all| median(&all));
    let row = |name: &str, seen: f64| {
        let what = format!("calls per second over HTTP, {name}, 8 connections");
        Row::ratio(&what, (seen, floor), "/s", (Limit::AtLeast(0.0), "none"))
    };
    Ok(vec![
        row("2025-11-25", handshake),
        row("2026-07-28", stateless),
    ])
}

/// What `tools/list` weighs, for every profile.
pub(super) fn weights(bench: &Bench) -> Result<Vec<Row>> {
    let lab = bench.lab()?;
    let weigh = |profile: &&str| {
        let mut mcp = Mcp::open_with(&lab, &["mcp", "--tools", profile])?;
        let list = mcp.request("tools/list", &json!({}))?;
        mcp.close()?;
        let tools = list["tools"].as_array().context("no tools")?.len();
        let weight = f64::from(u32::try_from(list.to_string().len())?) / KILO;
        let what = format!("tools/list of profile {profile}, {tools} tools");
        let promise = match *profile {
            "core" => (Limit::AtMost(10.0), "≤ 10 kB"),
            _ => (Limit::AtLeast(0.0), "none"),
        };
        Ok(Row::absolute(&what, weight, "kB", promise))
    };
    PROFILES.iter().map(weigh).collect()
}

fn rate(address: SocketAddr, era: Era, call: &Value) -> Result<f64> {
    let mut clients = Vec::with_capacity(WIDTH);
    for _ in 0..WIDTH {
        clients.push(HttpMcp::open(address, era)?);
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

fn call_of(lab: &Lab) -> Value {
    let words = ["/bin/sh", "-c", floor::SCRIPT];
    json!({"name": "exec", "arguments": {"command": words, "cwd": lab.work()}})
}
