//! From the moment a port is open to the event that says `ready`, both by the clock of the
//! same machine.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::Value;

use super::super::report::{Limit, Row};
use super::super::run::Bench;
use super::super::stats::Summary;
use super::listen;
use crate::lab::Lab;

/// Services of one run, one after the other.
const SERVICES: usize = 100;

/// With nothing else going on.
pub(super) fn from_the_socket(bench: &Bench) -> Result<Vec<Row>> {
    let lab = bench.lab()?;
    let mut took = Vec::new();
    for number in 0..=listen::count(bench, SERVICES) {
        let name = format!("ready-{number}");
        let id = listen::serve(&lab, &name, true)?;
        let seen = between(&lab, &id)?;
        listen::stop(&lab, &name)?;
        if number > 0 {
            took.push(seen);
        }
    }
    let seen = Summary::of(&took);
    let promise = (Limit::AtMost(50.0), "≤ 50 ms");
    Ok(vec![
        Row::absolute(
            "listening socket to `ready` event, p50",
            seen.p50,
            "ms",
            promise,
        ),
        Row::absolute(
            "listening socket to `ready` event, p99",
            seen.p99,
            "ms",
            promise,
        ),
    ])
}

fn between(lab: &Lab, id: &str) -> Result<Duration> {
    let printed = lab.output(id)?;
    let opened: jiff::Timestamp = printed.lines().next().context("no output")?.parse()?;
    let path = lab.state().join("executions").join(id).join("events.jsonl");
    let events = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let mut records = events.lines().map(serde_json::from_str::<Value>);
    let ready = records.find_map(|record| record.ok().filter(|it| it["event"] == "ready"));
    let at = ready.context("no event says ready")?["at"].clone();
    let at: jiff::Timestamp = at.as_str().context("an event without a time")?.parse()?;
    Ok(at.duration_since(opened).try_into()?)
}
