//! What the daemon holds after many short commands, retention at its defaults.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::json;

use super::report::{Limit, Row};
use super::run::Bench;
use crate::lab::{Lab, Mcp, Proc};

/// Commands that do nothing.
const COMMANDS: usize = 20_000;
/// Of them at once.
const WIDTH: usize = 8;
/// Between two looks at a daemon that should be quiet.
const LOOK: Duration = Duration::from_secs(1);
/// Looks in a row that must see the same: together longer than the engine waits before it
/// trims its heap.
const SAME_LOOKS: u32 = 4;
/// How long it may take to become quiet.
const QUIET_LIMIT: Duration = Duration::from_secs(15);
/// A figure without a promise.
const NO_PROMISE: (Limit, &str) = (Limit::AtMost(f64::INFINITY), "none");

/// What a process holds, in kilobytes as the kernel counts them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Held {
    /// Everything resident.
    resident: u32,
    /// Of that what no file stands behind: heap and stacks.
    anonymous: u32,
}

impl Held {
    fn of(proc: &Proc) -> Result<Self> {
        let field = |name| {
            let kilobytes = proc.status(name).context("the daemon is gone")?;
            kilobytes.parse().context(name)
        };
        Ok(Self {
            resident: field("VmRSS:")?,
            anonymous: field("RssAnon:")?,
        })
    }

    /// Megabytes over what was held before: resident, and anonymous.
    fn over(self, idle: Self) -> (f64, f64) {
        let over = |now: u32, then: u32| megabytes(now) - megabytes(then);
        (
            over(self.resident, idle.resident),
            over(self.anonymous, idle.anonymous),
        )
    }
}

/// The daemon idle, right after the commands, and once it is quiet.
pub(super) fn after_commands(bench: &Bench) -> Result<Vec<Row>> {
    let lab = bench.lab()?;
    let mut mcp = Mcp::open(&lab)?;
    let daemon = lab.daemon()?;
    let idle = quiet(&daemon)?;
    let commands = bench.count(COMMANDS);
    mcp.flood(&call_of(&lab), commands, WIDTH)?;
    let (resident_then, anonymous_then) = Held::of(&daemon)?.over(idle);
    let (resident, anonymous) = quiet(&daemon)?.over(idle);
    mcp.close()?;
    let row = |what: &str, value| Row::absolute(what, value, "MB", NO_PROMISE);
    Ok(vec![
        row(
            "resident memory of the idle daemon, one client connected",
            megabytes(idle.resident),
        ),
        row("of these anonymous", megabytes(idle.anonymous)),
        row(
            &format!("right after {commands} runs of `true`, {WIDTH} in flight, over idle"),
            resident_then,
        ),
        row("of these anonymous", anonymous_then),
        Row::absolute(
            &format!("quiet after {commands} runs of `true`, all of them kept, over idle"),
            resident,
            "MB",
            (Limit::AtMost(20.0), "≤ 20 MB over idle"),
        ),
        row("of these anonymous", anonymous),
    ])
}

/// What it holds once that changes no more, or after a while.
fn quiet(daemon: &Proc) -> Result<Held> {
    let limit = Instant::now() + QUIET_LIMIT;
    let mut last = Held::of(daemon)?;
    let mut same = 1;
    while same < SAME_LOOKS && Instant::now() < limit {
        // Nothing tells of memory given back: it is looked at now and then.
        thread::park_timeout(LOOK);
        let now = Held::of(daemon)?;
        same = if now == last { same + 1 } else { 1 };
        last = now;
    }
    Ok(last)
}

fn megabytes(kilobytes: u32) -> f64 {
    f64::from(kilobytes) * 1_024.0 / 1e6
}

fn call_of(lab: &Lab) -> serde_json::Value {
    let arguments = json!({"command": "true", "directory": lab.work()});
    json!({"name": "command_execute", "arguments": arguments})
}
