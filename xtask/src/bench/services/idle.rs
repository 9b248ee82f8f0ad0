//! What a hundred services cost that are ready and do nothing.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;

use super::super::output::cpu_seconds;
use super::super::report::{Limit, Row};
use super::super::run::Bench;
use super::listen;

/// Services.
const SERVICES: usize = 100;
/// How long they are watched, in milliseconds.
const WATCH_MS: u64 = 20_000;
/// How long the looks before `ready` have to die away, in milliseconds.
const SETTLE_MS: u64 = 3_000;
/// Nothing is promised; more than this would be a mistake.
const ALLOWED: (Limit, &str) = (Limit::AtMost(5.0), "≤ 5 % (aim)");

/// Daemon and shims, the services themselves left out.
pub(super) fn a_hundred(bench: &Bench) -> Result<Vec<Row>> {
    let lab = bench.lab()?;
    let count = listen::count(bench, SERVICES);
    let names: Vec<String> = (0..count).map(|number| format!("idle-{number}")).collect();
    let begun: Result<Vec<String>> = names
        .iter()
        .map(|name| listen::serve(&lab, name, false))
        .collect();
    for id in begun? {
        listen::is_ready(&lab, &id)?;
    }
    // The watched time itself: nothing is waited for.
    thread::park_timeout(Duration::from_millis(SETTLE_MS));
    let (before, begin) = (cpu_seconds(&lab), Instant::now());
    thread::park_timeout(Duration::from_millis(WATCH_MS));
    let share = (cpu_seconds(&lab) - before) / begin.elapsed().as_secs_f64() * 100.0;
    for name in &names {
        listen::stop(&lab, name)?;
    }
    Ok(vec![Row::absolute(
        &format!("{count} idle services that are ready: daemon and shims, of one core"),
        share,
        "%",
        ALLOWED,
    )])
}
