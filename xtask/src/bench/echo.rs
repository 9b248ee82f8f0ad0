//! `echo hi` over MCP stdio, including the connection to the daemon.

use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::{Value, json};

use super::baseline;
use super::context::BenchContext;
use super::report::{Promise, ReportRow};
use super::stats::{LatencySummary, median};
use crate::test_env::{McpClient, TestEnv};

/// Calls of one round, one in flight.
const CALLS: usize = 200;
/// Calls of one round with several in flight.
const FLOOD_CALLS: usize = 800;

/// One in flight: median and 99th percentile against the baseline.
pub(super) fn one_in_flight(bench: &BenchContext) -> Result<Vec<ReportRow>> {
    let env = bench.started_env()?;
    let mut mcp = McpClient::open(&env)?;
    let call = call_of(&env);
    let (mut floors, mut ours) = (Vec::new(), Vec::new());
    for round in 0..=bench.rounds {
        let (baseline, measured) = (baseline::one_by_one(CALLS)?, mcp.flood(&call, CALLS, 1)?);
        if round > 0 {
            floors.extend(baseline);
            ours.extend(measured);
        }
    }
    mcp.close()?;
    let (floor, seen) = (
        LatencySummary::from_samples(&floors),
        LatencySummary::from_samples(&ours),
    );
    Ok(vec![
        ReportRow::ratio(
            "`echo hi` through MCP stdio, one in flight, p50",
            seen.p50,
            floor.p50,
            "ms",
            Promise::at_most(1.7, "≤ 1.7×"),
        ),
        ReportRow::ratio(
            "the same, p99",
            seen.p99,
            floor.p99,
            "ms",
            Promise::at_most(2.5, "≤ 2.5×"),
        ),
    ])
}

/// Several in flight: calls per second against the baseline's 8-way rate.
pub(super) fn in_flight(bench: &BenchContext) -> Result<Vec<ReportRow>> {
    let env = bench.started_env()?;
    let mut mcp = McpClient::open(&env)?;
    let call = call_of(&env);
    let mut rates = [Vec::new(), Vec::new(), Vec::new(), Vec::new()];
    for round in 0..=bench.rounds {
        let seen = [
            baseline::rate(FLOOD_CALLS, 8)?,
            rate(&mut mcp, &call, 1)?,
            rate(&mut mcp, &call, 8)?,
            rate(&mut mcp, &call, 32)?,
        ];
        if round > 0 {
            rates
                .iter_mut()
                .zip(seen)
                .for_each(|(list, value)| list.push(value));
        }
    }
    mcp.close()?;
    let [floor, one, eight, wide] = rates.map(|list| median(&list));
    let half = Promise::at_least(0.5, "≥ 0.5× the floor's 8-way rate");
    Ok(vec![
        ReportRow::ratio(
            "calls per second, 1 in flight",
            one,
            floor,
            "/s",
            Promise::NONE,
        ),
        ReportRow::ratio("calls per second, 8 in flight", eight, floor, "/s", half),
        ReportRow::ratio("calls per second, 32 in flight", wide, floor, "/s", half),
    ])
}

fn rate(mcp: &mut McpClient, call: &Value, width: usize) -> Result<f64> {
    let begin = Instant::now();
    let took: Vec<Duration> = mcp.flood(call, FLOOD_CALLS, width)?;
    Ok(f64::from(u32::try_from(took.len())?) / begin.elapsed().as_secs_f64())
}

fn call_of(env: &TestEnv) -> Value {
    let arguments =
        json!({"command": "/bin/sh", "args": ["-c", baseline::SCRIPT], "directory": env.work()});
    json!({"name": "command_execute", "arguments": arguments})
}
