//! A command that prints ten numbered lines per second, cheap enough to run a thousand of.

use std::io::{self, Write};

use anyhow::Result;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};

use crate::console::CheckResult;

pub(super) const VERB: &str = "tick";
/// The interval between two lines in nanoseconds.
const EVERY_NS: i64 = 100_000_000;

/// What it can be told.
#[derive(Debug, clap::Args)]
pub(crate) struct TickArgs {
    /// How many lines
    #[arg(long)]
    lines: u32,
}

pub(crate) fn tick(args: &TickArgs) -> Result<CheckResult> {
    let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::empty())?;
    let every = Timespec {
        tv_sec: 0,
        tv_nsec: EVERY_NS,
    };
    let spec = Itimerspec {
        it_interval: every,
        it_value: every,
    };
    timerfd_settime(&timer, TimerfdTimerFlags::empty(), &spec)?;
    let mut out = io::stdout().lock();
    let mut expirations = [0; 8];
    for line in 1..=args.lines {
        rustix::io::read(&timer, &mut expirations)?;
        writeln!(out, "line {line}")?;
        out.flush()?;
    }
    Ok(CheckResult::Holds)
}
