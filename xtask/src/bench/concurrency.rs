//! Many commands at once: the cost of each while it runs, and whether output is lost.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::json;

use super::context::BenchContext;
use super::output::{cpu_seconds, private_memory, wait_exit};
use super::report::{Promise, ReportRow};
use super::ticker;
use crate::test_env::TestEnv;

/// The number of sleeping commands.
const SLEEPING: u32 = 50;
/// The number of printing commands.
const PRINTING: u32 = 1_000;
/// The number of lines of each, ten per second.
const LINES: u32 = 300;
/// The duration of the measurement in milliseconds.
const WATCH_MS: u64 = 10_000;

/// The private memory of a shim while its command runs.
pub(super) fn memory(bench: &BenchContext) -> Result<Vec<ReportRow>> {
    let env = bench.started_env()?;
    let ids: Vec<String> = (0..SLEEPING)
        .map(|_| start(&env, &["/bin/sleep", "300"]))
        .collect::<Result<_>>()?;
    let mut kilobytes = Vec::new();
    for id in &ids {
        let shim = env.shim(&env.info(id)?)?;
        kilobytes.push(private_memory(&shim)? * 1_000.0);
    }
    for id in &ids {
        env.stop(id)?;
    }
    let mean = kilobytes.iter().sum::<f64>() / f64::from(SLEEPING);
    Ok(vec![ReportRow::absolute(
        "private memory per running execution (shim), mean of 50",
        mean,
        "kB",
        Promise::at_most(100.0, "≤ 100 KB"),
    )])
}

/// A thousand commands that print ten lines per second.
pub(super) fn printing(bench: &BenchContext) -> Result<Vec<ReportRow>> {
    let env = bench.started_env()?;
    let ticker = std::env::current_exe()?;
    let ticker = ticker.to_str().context("a path that is not UTF-8")?;
    let lines = LINES.to_string();
    let words = [ticker, ticker::VERB, "--lines", lines.as_str()];
    let ids: Vec<String> = (0..PRINTING)
        .map(|_| start(&env, &words))
        .collect::<Result<_>>()?;
    let (before, begin) = (cpu_seconds(&env), Instant::now());
    // The measured time itself: no condition is waited for.
    thread::park_timeout(Duration::from_millis(WATCH_MS));
    let share = (cpu_seconds(&env) - before) / begin.elapsed().as_secs_f64() * 100.0;
    let mut lost = 0;
    for id in &ids {
        wait_exit(&env, id)?;
        lost += i64::from(LINES) - i64::try_from(env.output(id)?.lines().count())?;
    }
    Ok(vec![
        ReportRow::absolute(
            "1,000 commands printing 10 lines/s: daemon and shims, of one core",
            share,
            "%",
            Promise::at_most(20.0, "≤ 20 %"),
        ),
        ReportRow::absolute(
            "lines lost of 300,000",
            f64::from(i32::try_from(lost)?),
            "",
            Promise::at_most(0.0, "0"),
        ),
    ])
}

/// Starts a command; returns its id.
pub(super) fn start(env: &TestEnv, words: &[&str]) -> Result<String> {
    let command = json!({"argv": {"program": words[0], "args": &words[1..]}});
    let body = json!({"command": command, "cwd": env.work()});
    let info = env.request("POST", "/api/v1/executions", Some(&body))?;
    info["id"]
        .as_str()
        .map(str::to_owned)
        .context("a start without an id")
}
