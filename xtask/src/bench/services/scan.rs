//! One scan of the listening sockets of a process tree, with none and with thousands on the host.

use anyhow::Result;

use super::super::context::BenchContext;
use super::super::line_process::{self, LineProcess};
use super::super::report::{Promise, ReportRow};
use super::super::stats::LatencySummary;

/// The number of other listening sockets on the host.
const SOCKETS: [u32; 3] = [0, 1_000, 10_000];
/// Scans of one round.
const SCANS: usize = 50;
/// No promise: the figure is informative.
/// By the backend alone; the baseline parses the kernel's tables in text form and finds nothing.
pub(super) fn of_a_tree(bench: &BenchContext) -> Result<Vec<ReportRow>> {
    let env = bench.idle_env()?;
    let mut command = line_process::program(bench, "socket_snapshots")?;
    let mut program = LineProcess::start(command.arg(env.path().join("scan")))?;
    let mut rows = Vec::new();
    for sockets in SOCKETS {
        let (mut seen, mut text) = (Vec::new(), Vec::new());
        let scans = bench.count(SCANS);
        for round in 0..=bench.rounds {
            let [measured, theirs] = [
                program.request(&format!("observe {sockets} {scans}"))?,
                program.request(&format!("text {sockets} {scans}"))?,
            ];
            if round > 0 {
                seen.extend(measured);
                text.extend(theirs);
            }
        }
        let (seen, text) = (
            LatencySummary::from_samples(&seen),
            LatencySummary::from_samples(&text),
        );
        let what = format!("a look at a tree's sockets, {sockets} others on the host");
        rows.push(ReportRow::ratio(
            &format!("{what}, p50; floor: reading /proc/net/tcp and tcp6"),
            seen.p50,
            text.p50,
            "ms",
            Promise::NONE,
        ));
        rows.push(ReportRow::ratio(
            &format!("{what}, p99"),
            seen.p99,
            text.p99,
            "ms",
            Promise::NONE,
        ));
    }
    program.close()?;
    Ok(rows)
}
