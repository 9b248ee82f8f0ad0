//! The egress proxy of an allow list, compared with plain loopback in the same run.

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::super::context::BenchContext;
use super::super::line_process;
use super::super::report::{Promise, ReportRow};
use super::super::stats::median;
use crate::shell;

/// The number of runs; each transfers gigabytes.
const RUNS: u32 = 3;
/// The fields of the program's result with the same figure without and with the proxy.
const PATHS: [(&str, &str, &str); 3] = [
    ("gigabytes_per_s", "bytes through the gate", "GB/s"),
    ("connections_per_s", "connections through the gate", "/s"),
    (
        "connection_us_p99",
        "a connection through the gate, p99",
        "µs",
    ),
];

/// Throughput, connections, and the start time of the proxy.
pub(super) fn throughput(bench: &BenchContext) -> Result<Vec<ReportRow>> {
    let runs: Result<Vec<Value>> = (0..RUNS.min(bench.rounds).max(1))
        .map(|_| run(bench))
        .collect();
    let runs = runs?;
    let mut rows = Vec::new();
    for (name, what, unit) in PATHS {
        let direct = median_of(&runs, &format!("/direct/{name}"))?;
        let through = median_of(&runs, &format!("/through_the_gate/{name}"))?;
        rows.push(ReportRow::ratio(what, through, direct, unit, Promise::NONE));
    }
    let start = median_of(&runs, "/start_us_median")?;
    rows.push(ReportRow::absolute(
        "start of the gate",
        start,
        "µs",
        Promise::NONE,
    ));
    Ok(rows)
}

fn run(bench: &BenchContext) -> Result<Value> {
    let output = shell::capture(&mut line_process::program(bench, "egress_proxy")?)?;
    serde_json::from_str(&output).context(output)
}

fn median_of(runs: &[Value], pointer: &str) -> Result<f64> {
    let figures = runs.iter().map(|run| {
        let figure = run.pointer(pointer).and_then(Value::as_f64);
        figure.with_context(|| format!("no {pointer} in what was measured"))
    });
    Ok(median(&figures.collect::<Result<Vec<f64>>>()?))
}
