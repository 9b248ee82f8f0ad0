//! The time from the start of `ostler mcp` to its first response to `tools/list`.

use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::json;

use super::context::BenchContext;
use super::report::{Promise, ReportRow};
use super::stats::LatencySummary;
use crate::test_env::{McpClient, TestEnv};

/// Starts with a running daemon.
const WARM_STARTS: u32 = 50;
/// Starts that start the daemon.
const COLD_STARTS: u32 = 15;
/// Bytes in a kilobyte.
const KILO: f64 = 1_000.0;

/// Both starts, and the size of the list.
pub(super) fn first_answer(bench: &BenchContext) -> Result<Vec<ReportRow>> {
    let env = bench.started_env()?;
    let (mut cold, mut warm) = (Vec::new(), Vec::new());
    for _ in 0..COLD_STARTS {
        env.shut_down()?;
        cold.push(start(&env)?);
    }
    for _ in 0..WARM_STARTS {
        warm.push(start(&env)?);
    }
    let mut mcp = McpClient::open_with(&env, &["mcp"])?;
    let weight = mcp.request("tools/list", &json!({}))?.to_string().len();
    let idle = env
        .daemon()?
        .status("VmRSS:")
        .and_then(|rss| rss.parse::<f64>().ok());
    mcp.close()?;
    Ok(vec![
        ReportRow::absolute(
            "start of `ostler mcp` to the first tools/list answer, daemon up, p50",
            LatencySummary::from_samples(&warm).p50,
            "ms",
            Promise::at_most(10.0, "≤ 10 ms"),
        ),
        ReportRow::absolute(
            "the same, daemon not up, p50",
            LatencySummary::from_samples(&cold).p50,
            "ms",
            Promise::at_most(60.0, "≤ 60 ms"),
        ),
        ReportRow::absolute(
            "tools/list of the profile served",
            f64::from(u32::try_from(weight)?) / KILO,
            "kB",
            Promise::at_most(10.0, "≤ 10 kB"),
        ),
        ReportRow::absolute(
            "resident memory of the idle daemon",
            idle.unwrap_or(f64::NAN) * 1_024.0 / 1e6,
            "MB",
            Promise::at_most(20.0, "≤ 20 MB"),
        ),
    ])
}

fn start(env: &TestEnv) -> Result<Duration> {
    let begin = Instant::now();
    let mut mcp = McpClient::open_with(env, &["mcp"])?;
    mcp.request("tools/list", &json!({}))?;
    let took = begin.elapsed();
    mcp.close()?;
    Ok(took)
}
