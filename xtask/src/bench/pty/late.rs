//! How late output is: from a program's write to whoever listens.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};

use super::super::report::{Limit, Row};
use super::super::run::Bench;
use super::super::stats::Summary;
use super::echo::library;
use super::raw::Raw;
use super::stamp;
use crate::sh;

/// How often lines come, in words, in milliseconds, and lines of one round: slower than what
/// is told of output is gathered (5 ms), and faster.
const PACES: [(&str, u32, usize); 2] = [
    ("a line now and then (20 ms)", 20, 150),
    ("a line every 3 ms", 3, 500),
];

/// From the write to the library's event, against a bare read of the terminal.
pub(super) fn to_the_event(bench: &Bench) -> Result<Vec<Row>> {
    let lab = bench.quiet_lab()?;
    let mut library = library(bench, &lab)?;
    let stamper = std::env::current_exe()?;
    let stamper = stamper.to_str().context("a path that is not UTF-8")?;
    let mut rows = Vec::new();
    for (name, every_ms, lines) in PACES {
        let lines = bench.count(lines);
        let words = format!("{} --lines {lines} --every-ms {every_ms}", stamp::VERB);
        let ask = format!("late {stamper} {words}");
        let (mut floors, mut ours) = (Vec::new(), Vec::new());
        for round in 0..=bench.rounds {
            let mut command = sh::command(stamper, &lab.work());
            command.args(words.split(' '));
            let (bare, through) = (bare(&mut command, lines)?, library.ask(&ask)?);
            if round > 0 {
                floors.extend(bare);
                ours.extend(through);
            }
        }
        let (floor, seen) = (Summary::of(&floors), Summary::of(&ours));
        rows.extend([
            Row::ratio(
                &format!("output to event, {name}, p50, against a bare read"),
                (seen.p50, floor.p50),
                "ms",
                (Limit::AtMost(f64::INFINITY), "none"),
            ),
            Row::absolute(
                "the same, p99",
                seen.p99,
                "ms",
                (Limit::AtMost(10.0), "≤ 10 ms (document 002); aim 1 ms"),
            ),
        ]);
    }
    library.close()?;
    Ok(rows)
}

fn bare(command: &mut Command, lines: usize) -> Result<Vec<Duration>> {
    let mut raw = Raw::start(command, true)?;
    let (mut took, mut rest) = (Vec::with_capacity(lines), Vec::new());
    while took.len() < lines {
        let read = raw.read()?;
        let now = stamp::now()?;
        rest.extend(read);
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = rest.drain(..=end).collect();
            took.push(stamp::age(&line, now)?);
        }
    }
    raw.end()?;
    Ok(took)
}
