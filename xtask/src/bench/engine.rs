//! The engine embedded as a library: no MCP, no socket.

use anyhow::Result;

use super::baseline;
use super::context::BenchContext;
use super::line_process::{self, LineProcess};
use super::report::{Promise, ReportRow};
use super::stats::LatencySummary;
use crate::test_env::TestEnv;

/// Commands of one round.
const COMMANDS: usize = 200;

/// Starts the program that runs commands and reports the duration of each, with that many bytes of
/// heap in use.
pub(super) fn start_driver(
    bench: &BenchContext,
    env: &TestEnv,
    heap_bytes: u64,
) -> Result<LineProcess> {
    let mut command = line_process::program(bench, "engine")?;
    command
        .arg(bench.ostler())
        .arg(env.path().join("embedded"))
        .arg(heap_bytes.to_string());
    LineProcess::start(command.current_dir(env.work()))
}

/// From start to result, with a small heap and with a gigabyte.
pub(super) fn start_to_result(bench: &BenchContext) -> Result<Vec<ReportRow>> {
    let (small_lab, large_lab) = (bench.started_env()?, bench.started_env()?);
    let mut small = start_driver(bench, &small_lab, 0)?;
    let mut large = start_driver(bench, &large_lab, 1 << 30)?;
    let mut samples = [Vec::new(), Vec::new(), Vec::new()];
    let request = format!("run {COMMANDS}");
    for round in 0..=bench.rounds {
        let samples_of_round = [
            baseline::one_by_one(COMMANDS)?,
            small.request(&request)?,
            large.request(&request)?,
        ];
        if round > 0 {
            samples
                .iter_mut()
                .zip(samples_of_round)
                .for_each(|(list, more)| list.extend(more));
        }
    }
    small.close()?;
    large.close()?;
    let [floor, small, large] = samples.map(|list| LatencySummary::from_samples(&list));
    Ok(vec![
        ReportRow::ratio(
            "engine only: start to result, p50",
            small.p50,
            floor.p50,
            "ms",
            Promise::at_most(1.35, "≤ 1.35×"),
        ),
        ReportRow::ratio(
            "the same with 1 GB of touched memory, against the small heap",
            large.p50,
            small.p50,
            "ms",
            Promise::at_most(1.15, "≤ 1.15×"),
        ),
        ReportRow::ratio(
            "engine only, p99",
            small.p99,
            floor.p99,
            "ms",
            Promise::NONE,
        ),
    ])
}
