//! The time from an open port to the event `ready`, both by the clock of the same machine.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::Value;

use super::super::context::BenchContext;
use super::super::report::{Promise, ReportRow};
use super::super::stats::LatencySummary;
use super::listen;
use crate::test_env::TestEnv;

/// The number of services of one run, one after the other.
const SERVICES: usize = 100;

/// On an otherwise idle machine.
pub(super) fn from_the_socket(bench: &BenchContext) -> Result<Vec<ReportRow>> {
    let env = bench.started_env()?;
    let mut took = Vec::new();
    for number in 0..=listen::count(bench, SERVICES) {
        let name = format!("ready-{number}");
        let id = listen::serve(&env, &name, true)?;
        let seen = ready_latency(&env, &id)?;
        listen::stop(&env, &name)?;
        if number > 0 {
            took.push(seen);
        }
    }
    let seen = LatencySummary::from_samples(&took);
    let promise = Promise::at_most(50.0, "≤ 50 ms");
    Ok(vec![
        ReportRow::absolute(
            "listening socket to `ready` event, p50",
            seen.p50,
            "ms",
            promise,
        ),
        ReportRow::absolute(
            "listening socket to `ready` event, p99",
            seen.p99,
            "ms",
            promise,
        ),
    ])
}

fn ready_latency(env: &TestEnv, id: &str) -> Result<Duration> {
    let printed = env.output(id)?;
    let opened: jiff::Timestamp = printed.lines().next().context("no output")?.parse()?;
    let path = env.state().join("executions").join(id).join("events.jsonl");
    let events = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let mut records = events.lines().map(serde_json::from_str::<Value>);
    let ready = records.find_map(|record| record.ok().filter(|it| it["event"] == "ready"));
    let at = ready.context("no event says ready")?["at"].clone();
    let at: jiff::Timestamp = at.as_str().context("an event without a time")?.parse()?;
    Ok(at.duration_since(opened).try_into()?)
}
