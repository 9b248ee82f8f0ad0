//! `echo hi` through MCP over stdio, relay to the daemon included.

use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::{Value, json};

use super::floor;
use super::report::{Limit, Row};
use super::run::Bench;
use super::stats::{Summary, median};
use crate::lab::{Lab, Mcp};

/// Calls of one round, one in flight.
const CALLS: usize = 200;
/// Calls of one round with several in flight.
const FLOOD_CALLS: usize = 800;

/// One in flight: median and 99th percentile against the floor.
pub(super) fn one_in_flight(bench: &Bench) -> Result<Vec<Row>> {
    let lab = bench.lab()?;
    let mut mcp = Mcp::open(&lab)?;
    let call = call_of(&lab);
    let (mut floors, mut ours) = (Vec::new(), Vec::new());
    for round in 0..=bench.rounds {
        let (bare, through) = (floor::one_by_one(CALLS)?, mcp.flood(&call, CALLS, 1)?);
        if round > 0 {
            floors.extend(bare);
            ours.extend(through);
        }
    }
    mcp.close()?;
    let (floor, seen) = (Summary::of(&floors), Summary::of(&ours));
    Ok(vec![
        Row::ratio(
            "`echo hi` through MCP stdio, one in flight, p50",
            (seen.p50, floor.p50),
            "ms",
            (Limit::AtMost(1.7), "≤ 1.7×"),
        ),
        Row::ratio(
            "the same, p99",
            (seen.p99, floor.p99),
            "ms",
            (Limit::AtMost(2.5), "≤ 2.5×"),
        ),
    ])
}

/// Several in flight: calls per second against the floor's 8-way rate.
pub(super) fn in_flight(bench: &Bench) -> Result<Vec<Row>> {
    let lab = bench.lab()?;
    let mut mcp = Mcp::open(&lab)?;
    let call = call_of(&lab);
    let mut rates = [Vec::new(), Vec::new(), Vec::new(), Vec::new()];
    for round in 0..=bench.rounds {
        let seen = [
            floor::rate(FLOOD_CALLS, 8)?,
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
    let half = (Limit::AtLeast(0.5), "≥ 0.5× the floor's 8-way rate");
    Ok(vec![
        Row::ratio(
            "calls per second, 1 in flight",
            (one, floor),
            "/s",
            (Limit::AtLeast(0.0), "none"),
        ),
        Row::ratio("calls per second, 8 in flight", (eight, floor), "/s", half),
        Row::ratio("calls per second, 32 in flight", (wide, floor), "/s", half),
    ])
}

fn rate(mcp: &mut Mcp, call: &Value, width: usize) -> Result<f64> {
    let begin = Instant::now();
    let took: Vec<Duration> = mcp.flood(call, FLOOD_CALLS, width)?;
    Ok(f64::from(u32::try_from(took.len())?) / begin.elapsed().as_secs_f64())
}

fn call_of(lab: &Lab) -> Value {
    let arguments =
        json!({"command": "/bin/sh", "args": ["-c", floor::SCRIPT], "directory": lab.work()});
    json!({"name": "command_execute", "arguments": arguments})
}
