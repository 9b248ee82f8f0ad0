//! Shells: the time to the first prompt, and from a command to its exit status.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use super::super::context::BenchContext;
use super::super::report::{Promise, ReportRow};
use super::super::stats::LatencySummary;
use super::echo::start_library;
use super::raw_pty::RawPty;
use crate::shell;
use crate::test_env::TestEnv;

/// Shells of one round.
const SHELLS: usize = 20;
/// Commands of one round.
const COMMANDS: usize = 100;
/// The prompt to wait for.
const PROMPT: &str = "ready";
/// From start to prompt, and a command in a running shell, compared with a raw terminal.
pub(super) fn to_the_prompt(bench: &BenchContext) -> Result<Vec<ReportRow>> {
    let env = bench.idle_env()?;
    let mut library = start_library(bench, &env)?;
    let (shells, commands) = (bench.count(SHELLS), bench.count(COMMANDS));
    let mut samples = [const { Vec::new() }; 3];
    for round in 0..=bench.rounds {
        let seen = [
            baseline(&env, shells)?,
            library.request(&format!("prompt {shells}"))?,
            library.request(&format!("shell {commands}"))?,
        ];
        if round > 0 {
            let pairs = samples.iter_mut().zip(seen);
            pairs.for_each(|(all, some)| all.extend(some));
        }
    }
    library.close()?;
    let [floor, prompt, command] = samples.map(|all| LatencySummary::from_samples(&all));
    Ok(vec![
        ReportRow::ratio(
            "start of bash to its prompt, p50, against setsid(1) on a bare terminal",
            prompt.p50,
            floor.p50,
            "ms",
            Promise::NONE,
        ),
        ReportRow::ratio("the same, p99", prompt.p99, floor.p99, "ms", Promise::NONE),
        ReportRow::absolute(
            "`:` in a living shell to its exit status, p50",
            command.p50,
            "ms",
            Promise::NONE,
        ),
        ReportRow::absolute("the same, p99", command.p99, "ms", Promise::NONE),
    ])
}

fn baseline(env: &TestEnv, count: usize) -> Result<Vec<Duration>> {
    let mut took = Vec::with_capacity(count);
    for _ in 0..count {
        let begin = Instant::now();
        let mut command = shell::command("setsid", &env.work());
        command
            .args(["--ctty", "bash", "--norc", "--noprofile", "-i"])
            .env("PS1", PROMPT);
        let mut raw = RawPty::start(&mut command, false)?;
        let mut seen = Vec::new();
        while !String::from_utf8_lossy(&seen).contains(PROMPT) {
            let read = raw.read()?;
            ensure!(
                !read.is_empty(),
                "bash ended: {}",
                String::from_utf8_lossy(&seen)
            );
            seen.extend(read);
        }
        took.push(begin.elapsed());
        raw.end()?;
    }
    Ok(took)
}
