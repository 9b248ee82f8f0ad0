//! The latency of output: from a program's write to its listeners.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};

use super::super::context::BenchContext;
use super::super::report::{Promise, ReportRow};
use super::super::stats::LatencySummary;
use super::echo::start_library;
use super::raw_pty::RawPty;
use super::timestamps;
use crate::shell;

/// Intervals between lines in words and in milliseconds, and lines of one round: longer and shorter
/// than the interval at which output events are coalesced (5 ms).
const PACES: [(&str, u32, usize); 2] = [
    ("a line now and then (20 ms)", 20, 150),
    ("a line every 3 ms", 3, 500),
];

/// From the write to the library's event, compared with a bare read of the terminal.
pub(super) fn to_the_event(bench: &BenchContext) -> Result<Vec<ReportRow>> {
    let env = bench.idle_env()?;
    let mut library = start_library(bench, &env)?;
    let stamper = std::env::current_exe()?;
    let stamper = stamper.to_str().context("a path that is not UTF-8")?;
    let mut rows = Vec::new();
    for (name, every_ms, lines) in PACES {
        let lines = bench.count(lines);
        let words = format!("{} --lines {lines} --every-ms {every_ms}", timestamps::VERB);
        let request = format!("late {stamper} {words}");
        let (mut floors, mut ours) = (Vec::new(), Vec::new());
        for round in 0..=bench.rounds {
            let mut command = shell::command(stamper, &env.work());
            command.args(words.split(' '));
            let (bare, through) = (baseline(&mut command, lines)?, library.request(&request)?);
            if round > 0 {
                floors.extend(bare);
                ours.extend(through);
            }
        }
        let (floor, seen) = (
            LatencySummary::from_samples(&floors),
            LatencySummary::from_samples(&ours),
        );
        rows.extend([
            ReportRow::ratio(
                &format!("output to event, {name}, p50, against a bare read"),
                seen.p50,
                floor.p50,
                "ms",
                Promise::NONE,
            ),
            ReportRow::absolute(
                "the same, p99",
                seen.p99,
                "ms",
                Promise::at_most(10.0, "≤ 10 ms; aim 1 ms"),
            ),
        ]);
    }
    library.close()?;
    Ok(rows)
}

fn baseline(command: &mut Command, lines: usize) -> Result<Vec<Duration>> {
    let mut raw = RawPty::start(command, true)?;
    let (mut took, mut rest) = (Vec::with_capacity(lines), Vec::new());
    while took.len() < lines {
        let read = raw.read()?;
        let now = timestamps::now()?;
        rest.extend(read);
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = rest.drain(..=end).collect();
            took.push(timestamps::age(&line, now)?);
        }
    }
    raw.end()?;
    Ok(took)
}
