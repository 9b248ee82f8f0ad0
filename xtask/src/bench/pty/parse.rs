//! The throughput at which a screen is folded from bytes.

use std::time::Duration;

use anyhow::Result;

use super::super::context::BenchContext;
use super::super::line_process::{self, LineProcess};
use super::super::report::{Promise, ReportRow};
use super::super::stats::median;

/// The size of one stream in bytes.
const BYTES: usize = 16_000_000;
/// Bytes in a megabyte.
const MEGA: f64 = 1e6;
/// The kinds of streams, by their names in the program.
const KINDS: [(&str, &str); 4] = [
    ("log", "plain lines"),
    ("colour", "coloured lines"),
    ("full", "a full-screen program"),
    ("wide", "wide characters and emoji"),
];

/// `Screen` compared with the emulator alone.
pub(super) fn throughput(bench: &BenchContext) -> Result<Vec<ReportRow>> {
    let root = bench.workspace.root().to_owned();
    let mut command = line_process::program(bench, "screen_parsing")?;
    let mut parser = LineProcess::start(command.current_dir(root))?;
    let bytes = bench.count(BYTES);
    let size = f64::from(u32::try_from(bytes)?);
    let mut rows = Vec::new();
    for (kind, name) in KINDS {
        let (mut bare, mut ours) = (Vec::new(), Vec::new());
        for round in 0..=bench.rounds {
            let took = parser.request(&format!("{kind} {bytes}"))?;
            let speed = |took: &Duration| size / MEGA / took.as_secs_f64();
            if round > 0 {
                bare.push(speed(&took[0]));
                ours.push(speed(&took[1]));
            }
        }
        rows.push(ReportRow::ratio(
            &format!("screen: {name}, against the emulator alone"),
            median(&ours),
            median(&bare),
            "MB/s",
            Promise::NONE,
        ));
    }
    parser.close()?;
    Ok(rows)
}
