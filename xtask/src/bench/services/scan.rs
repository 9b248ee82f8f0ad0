//! One look at the listening sockets of a tree, with none and with thousands on the host.

use anyhow::Result;

use super::super::orders::{self, Orders};
use super::super::report::{Limit, Row};
use super::super::run::Bench;
use super::super::stats::Summary;

/// Sockets of others that listen on the host.
const SOCKETS: [u32; 3] = [0, 1_000, 10_000];
/// Looks of one round.
const LOOKS: usize = 50;
/// Nothing is promised: the figure is there to be seen.
const NO_PROMISE: (Limit, &str) = (Limit::AtMost(f64::INFINITY), "none");

/// By the place alone; the floor reads the kernel's tables as text and finds nothing in them.
pub(super) fn of_a_tree(bench: &Bench) -> Result<Vec<Row>> {
    let lab = bench.quiet_lab()?;
    let mut command = orders::example(bench, "ostler-process", "looks")?;
    let mut program = Orders::start(command.arg(lab.path().join("scan")))?;
    let mut rows = Vec::new();
    for sockets in SOCKETS {
        let (mut seen, mut text) = (Vec::new(), Vec::new());
        let looks = bench.count(LOOKS);
        for round in 0..=bench.rounds {
            let [ours, theirs] = [
                program.ask(&format!("observe {sockets} {looks}"))?,
                program.ask(&format!("text {sockets} {looks}"))?,
            ];
            if round > 0 {
                seen.extend(ours);
                text.extend(theirs);
            }
        }
        let (seen, text) = (Summary::of(&seen), Summary::of(&text));
        let what = format!("a look at a tree's sockets, {sockets} others on the host");
        rows.push(Row::ratio(
            &format!("{what}, p50; floor: reading /proc/net/tcp and tcp6"),
            (seen.p50, text.p50),
            "ms",
            NO_PROMISE,
        ));
        rows.push(Row::ratio(
            &format!("{what}, p99"),
            (seen.p99, text.p99),
            "ms",
            NO_PROMISE,
        ));
    }
    program.close()?;
    Ok(rows)
}
