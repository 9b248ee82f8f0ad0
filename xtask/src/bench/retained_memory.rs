//! The memory of the daemon after many short commands, with default retention.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::json;

use super::context::BenchContext;
use super::report::{Promise, ReportRow};
use crate::test_env::{McpClient, ProcessHandle, TestEnv};

/// The number of commands, which do nothing.
const COMMANDS: usize = 20_000;
/// The number of concurrent commands.
const WIDTH: usize = 8;
/// The interval between two measurements of a daemon that should be idle.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Equal measurements in a row: together longer than the delay after which the engine trims its
/// heap.
const STABLE_POLLS: u32 = 4;
/// The time within which it must become stable.
const STABLE_TIMEOUT: Duration = Duration::from_secs(15);
/// The memory of a process in kilobytes, as the kernel counts them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct DaemonMemory {
    resident: u32,
    /// The anonymous part of it: heap and stacks.
    anonymous: u32,
}

impl DaemonMemory {
    fn read(proc: &ProcessHandle) -> Result<Self> {
        let field = |name| {
            let kilobytes = proc.status(name).context("the daemon is gone")?;
            kilobytes.parse().context(name)
        };
        Ok(Self {
            resident: field("VmRSS:")?,
            anonymous: field("RssAnon:")?,
        })
    }

    /// Megabytes above the memory at idle: resident, and anonymous.
    fn above(self, idle: Self) -> (f64, f64) {
        let over = |now: u32, then: u32| megabytes(now) - megabytes(then);
        (
            over(self.resident, idle.resident),
            over(self.anonymous, idle.anonymous),
        )
    }
}

/// The daemon idle, right after the commands, and once it is stable.
pub(super) fn after_commands(bench: &BenchContext) -> Result<Vec<ReportRow>> {
    let env = bench.started_env()?;
    let mut mcp = McpClient::open(&env)?;
    let daemon = env.daemon()?;
    let idle = wait_stable(&daemon)?;
    let commands = bench.count(COMMANDS);
    mcp.flood(&call_of(&env), commands, WIDTH)?;
    let (resident_then, anonymous_then) = DaemonMemory::read(&daemon)?.above(idle);
    let (resident, anonymous) = wait_stable(&daemon)?.above(idle);
    mcp.close()?;
    let row = |what: &str, value| ReportRow::absolute(what, value, "MB", Promise::NONE);
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
        ReportRow::absolute(
            &format!("quiet after {commands} runs of `true`, all of them kept, over idle"),
            resident,
            "MB",
            Promise::at_most(20.0, "≤ 20 MB over idle"),
        ),
        row("of these anonymous", anonymous),
    ])
}

/// Its memory once that is stable, or after the timeout.
fn wait_stable(daemon: &ProcessHandle) -> Result<DaemonMemory> {
    let limit = Instant::now() + STABLE_TIMEOUT;
    let mut last = DaemonMemory::read(daemon)?;
    let mut same = 1;
    while same < STABLE_POLLS && Instant::now() < limit {
        // No event reports freed memory: it is polled.
        thread::park_timeout(POLL_INTERVAL);
        let now = DaemonMemory::read(daemon)?;
        same = if now == last { same + 1 } else { 1 };
        last = now;
    }
    Ok(last)
}

fn megabytes(kilobytes: u32) -> f64 {
    f64::from(kilobytes) * 1_024.0 / 1e6
}

fn call_of(env: &TestEnv) -> serde_json::Value {
    let arguments = json!({"command": "true", "directory": env.work()});
    json!({"name": "command_execute", "arguments": arguments})
}
