//! What a hundred services cost that are ready and do nothing.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;

use super::super::output::cpu_seconds;
use super::super::report::{ReportRow, Threshold};
use super::super::run::BenchContext;
use super::listen;

/// Services.
const SERVICES: usize = 100;
/// How long they are watched, in milliseconds.
const WATCH_MS: u64 = 20_000;
/// How long the looks before `ready` have to die away, in milliseconds.
const SETTLE_MS: u64 = 3_000;
/// Nothing is promised; more than this would be a mistake.
const ALLOWED: (Threshold, &str) = (Threshold::AtMost(5.0), "≤ 5 % (aim)");

/// Daemon and shims, the services themselves left out.
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
    // The watched time itself: nothing is waited for.
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
