//! What the resource monitor costs while a thousand commands sleep.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::Value;

use super::concurrency::start;
use super::context::BenchContext;
use super::report::{Promise, ReportRow};
use crate::test_env::TestEnv;

/// The number of sleeping commands.
const SLEEPING: usize = 1_000;
/// The duration of a measurement: two intervals of samples.
const WATCH: Duration = Duration::from_secs(20);
/// How long one request to watch counts at least.
const LEASE: Duration = Duration::from_secs(4);

/// The daemon's processor time for its samples, and with a tenth of the commands watched.
pub(super) fn cost(bench: &BenchContext) -> Result<Vec<ReportRow>> {
    let env = bench.started_env()?;
    let count = bench.count(SLEEPING);
    let ids: Vec<String> = (0..count)
        .map(|_| start(&env, &["/bin/sleep", "3600"]))
        .collect::<Result<_>>()?;
    let last = ids.last().context("commands")?;
    // The first samples are over: those of one that started later than all others.
    history(&env, last, "wait_ms=20000")?;
    let alone = share(&env, || Ok(()))?;
    let watched = share(&env, || {
        for id in ids.iter().take(count / 10) {
            history(&env, id, "watch=true&limit=1")?;
        }
        Ok(())
    })?;
    for id in &ids {
        env.stop(id)?;
    }
    env.shut_down()?;
    let row = |what: String, share, promise| ReportRow::absolute(&what, share, "%", promise);
    Ok(vec![
        row(
            format!("{count} commands sampled every 10 s: daemon, of one core"),
            alone,
            Promise::at_most(2.0, "≤ 2 %"),
        ),
        row(
            "a tenth of them every second, with the requests of their watchers".to_owned(),
            watched,
            Promise::NONE,
        ),
    ])
}

/// The daemon's share of one core, while something is done again and again.
fn share(env: &TestEnv, again: impl Fn() -> Result<()>) -> Result<f64> {
    let daemon = env.daemon()?;
    let (before, begin) = (daemon.cpu_seconds(), Instant::now());
    while begin.elapsed() < WATCH {
        again()?;
        // The measured time itself: no condition is waited for.
        thread::park_timeout(LEASE);
    }
    Ok((daemon.cpu_seconds() - before) / begin.elapsed().as_secs_f64() * 100.0)
}

fn history(env: &TestEnv, id: &str, query: &str) -> Result<Value> {
    let path = format!("/api/v1/executions/{id}/resources/history?{query}");
    env.request("GET", &path, None)
}
