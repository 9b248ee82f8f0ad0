//! Shells: to the first prompt, and from a command to its exit status.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use super::super::report::{Limit, Row};
use super::super::run::Bench;
use super::super::stats::Summary;
use super::echo::library;
use super::raw::Raw;
use crate::lab::Lab;
use crate::sh;

/// Shells of one round.
const SHELLS: usize = 20;
/// Commands of one round.
const COMMANDS: usize = 100;
/// The prompt looked for.
const PROMPT: &str = "ready";
/// A figure without a promise.
const NO_PROMISE: (Limit, &str) = (Limit::AtMost(f64::INFINITY), "none");

/// Start to prompt against a bare terminal, and a command in a living shell against the same.
pub(super) fn to_the_prompt(bench: &Bench) -> Result<Vec<Row>> {
    let lab = bench.quiet_lab()?;
    let mut library = library(bench, &lab)?;
    let (shells, commands) = (bench.count(SHELLS), bench.count(COMMANDS));
    let mut samples = [const { Vec::new() }; 3];
    for round in 0..=bench.rounds {
        let seen = [
            bare(&lab, shells)?,
            library.ask(&format!("prompt {shells}"))?,
            library.ask(&format!("shell {commands}"))?,
        ];
        if round > 0 {
            let pairs = samples.iter_mut().zip(seen);
            pairs.for_each(|(all, some)| all.extend(some));
        }
    }
    library.close()?;
    let [floor, prompt, command] = samples.map(|all| Summary::of(&all));
    Ok(vec![
        Row::ratio(
            "start of bash to its prompt, p50, against setsid(1) on a bare terminal",
            (prompt.p50, floor.p50),
            "ms",
            NO_PROMISE,
        ),
        Row::ratio("the same, p99", (prompt.p99, floor.p99), "ms", NO_PROMISE),
        Row::absolute(
            "`:` in a living shell to its exit status, p50",
            command.p50,
            "ms",
            NO_PROMISE,
        ),
        Row::absolute("the same, p99", command.p99, "ms", NO_PROMISE),
    ])
}

fn bare(lab: &Lab, count: usize) -> Result<Vec<Duration>> {
    let mut took = Vec::with_capacity(count);
    for _ in 0..count {
        let begin = Instant::now();
        let mut command = sh::command("setsid", &lab.work());
        command
            .args(["--ctty", "bash", "--norc", "--noprofile", "-i"])
            .env("PS1", PROMPT);
        let mut raw = Raw::start(&mut command, false)?;
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
