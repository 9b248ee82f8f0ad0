//! From the start of `ostler mcp` to its first answer to `tools/list`.

use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::json;

use super::report::{Limit, Row};
use super::run::Bench;
use super::stats::Summary;
use crate::lab::{Lab, Mcp};

/// Starts with a daemon already up.
const WARM_STARTS: u32 = 50;
/// Starts that bring the daemon up.
const COLD_STARTS: u32 = 15;
/// Bytes in a kilobyte.
const KILO: f64 = 1_000.0;

/// Both starts, and what the list weighs.
pub(super) fn first_answer(bench: &Bench) -> Result<Vec<Row>> {
    let lab = bench.lab()?;
    let (mut cold, mut warm) = (Vec::new(), Vec::new());
    for _ in 0..COLD_STARTS {
        lab.shut_down()?;
        cold.push(start(&lab)?);
    }
    for _ in 0..WARM_STARTS {
        warm.push(start(&lab)?);
    }
    let mut mcp = Mcp::open_with(&lab, &["mcp"])?;
    let weight = mcp.request("tools/list", &json!({}))?.to_string().len();
    let idle = lab
        .daemon()?
        .status("VmRSS:")
        .and_then(|rss| rss.parse::<f64>().ok());
    mcp.close()?;
    Ok(vec![
        Row::absolute(
            "start of `ostler mcp` to the first tools/list answer, daemon up, p50",
            Summary::of(&warm).p50,
            "ms",
            (Limit::AtMost(10.0), "≤ 10 ms"),
        ),
        Row::absolute(
            "the same, daemon not up, p50",
            Summary::of(&cold).p50,
            "ms",
            (Limit::AtMost(60.0), "≤ 60 ms"),
        ),
        Row::absolute(
            "tools/list of the profile served",
            f64::from(u32::try_from(weight)?) / KILO,
            "kB",
            (Limit::AtMost(10.0), "≤ 10 kB"),
        ),
        Row::absolute(
            "resident memory of the idle daemon",
            idle.unwrap_or(f64::NAN) * 1_024.0 / 1e6,
            "MB",
            (Limit::AtMost(20.0), "≤ 20 MB"),
        ),
    ])
}

fn start(lab: &Lab) -> Result<Duration> {
    let begin = Instant::now();
    let mut mcp = Mcp::open_with(lab, &["mcp"])?;
    mcp.request("tools/list", &json!({}))?;
    let took = begin.elapsed();
    mcp.close()?;
    Ok(took)
}
