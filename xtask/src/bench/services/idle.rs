//! The cost of a hundred services that are ready and idle.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;

use super::super::context::BenchContext;
use super::super::output::cpu_seconds;
use super::super::report::{Promise, ReportRow};
use super::listen;

/// The number of services.
const SERVICES: usize = 100;
/// The duration of the measurement in milliseconds.
const WATCH_MS: u64 = 20_000;
/// The time after `ready` for probes to cease, in milliseconds.
const SETTLE_MS: u64 = 3_000;
/// No promise; more than this would be an error.
const ALLOWED: Promise = Promise::at_most(5.0, "≤ 5 % (aim)");

/// CPU time of the daemon and the shims, without the services themselves.
pub(super) fn a_hundred(bench: &BenchContext) -> Result<Vec<ReportRow>> {
    let env = bench.started_env()?;
    let count = listen::count(bench, SERVICES);
    let names: Vec<String> = (0..count).map(|number| format!("idle-{number}")).collect();
    let started: Result<Vec<String>> = names
        .iter()
        .map(|name| listen::serve(&env, name, false))
        .collect();
    for id in started? {
        listen::is_ready(&env, &id)?;
    }
    // The measured time itself: no condition is waited for.
    thread::park_timeout(Duration::from_millis(SETTLE_MS));
    let (before, begin) = (cpu_seconds(&env), Instant::now());
    thread::park_timeout(Duration::from_millis(WATCH_MS));
    let share = (cpu_seconds(&env) - before) / begin.elapsed().as_secs_f64() * 100.0;
    for name in &names {
        listen::stop(&env, name)?;
    }
    Ok(vec![ReportRow::absolute(
        &format!("{count} idle services that are ready: daemon and shims, of one core"),
        share,
        "%",
        ALLOWED,
    )])
}
