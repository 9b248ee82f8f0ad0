//! The engine alone, embedded as a library: no MCP, no socket.

use anyhow::Result;

use super::floor;
use super::orders::{self, Orders};
use super::report::{Limit, Row};
use super::run::Bench;
use super::stats::Summary;
use crate::lab::Lab;

/// Commands of one round.
const COMMANDS: usize = 200;

/// The example program of the library that runs commands and says how long each took, with
/// that many bytes of heap touched.
pub(super) fn measure(bench: &Bench, lab: &Lab, heap_bytes: u64) -> Result<Orders> {
    let mut command = orders::example(bench, "ostler", "measure")?;
    command
        .arg(bench.ostler())
        .arg(lab.path().join("embedded"))
        .arg(heap_bytes.to_string());
    Orders::start(command.current_dir(lab.work()))
}

/// Start to result, with a small heap and with a gigabyte.
pub(super) fn start_to_result(bench: &Bench) -> Result<Vec<Row>> {
    let (small_lab, large_lab) = (bench.lab()?, bench.lab()?);
    let mut small = measure(bench, &small_lab, 0)?;
    let mut large = measure(bench, &large_lab, 1 << 30)?;
    let mut samples = [Vec::new(), Vec::new(), Vec::new()];
    let ask = format!("run {COMMANDS}");
    for round in 0..=bench.rounds {
        let seen = [
            floor::one_by_one(COMMANDS)?,
            small.ask(&ask)?,
            large.ask(&ask)?,
        ];
        if round > 0 {
            samples
                .iter_mut()
                .zip(seen)
                .for_each(|(list, more)| list.extend(more));
        }
    }
    small.close()?;
    large.close()?;
    let [floor, small, large] = samples.map(|list| Summary::of(&list));
    Ok(vec![
        Row::ratio(
            "engine only: start to result, p50",
            (small.p50, floor.p50),
            "ms",
            (Limit::AtMost(1.35), "≤ 1.35×"),
        ),
        Row::ratio(
            "the same with 1 GB of touched memory, against the small heap",
            (large.p50, small.p50),
            "ms",
            (Limit::AtMost(1.15), "≤ 1.15×"),
        ),
        Row::ratio(
            "engine only, p99",
            (small.p99, floor.p99),
            "ms",
            (Limit::AtMost(f64::INFINITY), "none"),
        ),
    ])
}
