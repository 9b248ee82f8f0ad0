//! A program that prints the monotonic clock on each line.

use std::io::{self, Write};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_gettime,
    timerfd_create, timerfd_settime,
};

use crate::console::CheckResult;

pub(super) const VERB: &str = "stamp";
/// What it can be told.
#[derive(Debug, clap::Args)]
pub(crate) struct StampArgs {
    /// How many lines
    #[arg(long)]
    lines: usize,
    /// Milliseconds between two of them
    #[arg(long)]
    every_ms: i64,
}

pub(crate) fn stamp(args: &StampArgs) -> Result<CheckResult> {
    let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::empty())?;
    let every = Timespec {
        tv_sec: 0,
        // At most 999, as the kernel requires.
        tv_nsec: args.every_ms * 1_000_000,
    };
    let spec = Itimerspec {
        it_interval: every,
        it_value: every,
    };
    timerfd_settime(&timer, TimerfdTimerFlags::empty(), &spec)?;
    let mut out = io::stdout().lock();
    let mut expirations = [0; 8];
    for _ in 0..args.lines {
        rustix::io::read(&timer, &mut expirations)?;
        // In one write, so that no reader gets a part of a line.
        out.write_all(format!("{}\n", now()?.as_nanos()).as_bytes())?;
        out.flush()?;
    }
    Ok(CheckResult::Holds)
}

/// Reads the monotonic clock.
pub(super) fn now() -> Result<Duration> {
    let now = clock_gettime(ClockId::Monotonic);
    Ok(Duration::new(
        now.tv_sec.try_into()?,
        now.tv_nsec.try_into()?,
    ))
}

/// The age of one of its lines.
pub(super) fn age(line: &[u8], now: Duration) -> Result<Duration> {
    let line = std::str::from_utf8(line)?.trim();
    let stamp = line
        .parse()
        .with_context(|| format!("no stamp: {line:?}"))?;
    let stamp = Duration::from_nanos(stamp);
    ensure!(stamp <= now, "a stamp of the future");
    Ok(now - stamp)
}
