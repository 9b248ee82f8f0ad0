//! What it costs to see that a command is a server, or that it is none.

use std::fs;
use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::json;

use super::super::report::{Limit, Row};
use super::super::run::Bench;
use super::super::stats::Summary;
use crate::lab::Lab;

/// Requests of one round.
const REQUESTS: usize = 200;
/// Nothing is promised: the figure is there to be seen.
const NO_PROMISE: (Limit, &str) = (Limit::AtMost(f64::INFINITY), "none");
/// What is asked about.
const COMMANDS: [(&str, &str); 3] = [
    ("a server by its name", "uvicorn app:app --reload"),
    (
        "a server behind a script of package.json",
        "cd . && npm run dev",
    ),
    ("no server", "grep -rn 'next dev' src | sort | head"),
];

/// Through REST; the floor is the same road to an answer that needs no work.
pub(super) fn of_commands(bench: &Bench) -> Result<Vec<Row>> {
    let lab = bench.lab()?;
    let package = json!({"scripts": {"dev": "PORT=3000 npx vite --host"}});
    fs::write(lab.work().join("package.json"), package.to_string())?;
    let count = bench.count(REQUESTS);
    let mut floor = Vec::new();
    let mut seen = COMMANDS.map(|_| Vec::new());
    for round in 0..=bench.rounds {
        let nothing = nothing(&lab, count)?;
        for (samples, (_, script)) in seen.iter_mut().zip(COMMANDS) {
            let more = detected(&lab, script, count)?;
            if round > 0 {
                samples.extend(more);
            }
        }
        if round > 0 {
            floor.extend(nothing);
        }
    }
    let floor = Summary::of(&floor);
    let rows = seen.iter().zip(COMMANDS).map(|(samples, (what, _))| {
        Row::ratio(
            &format!("recognising {what}, request included, p50; floor: a request for health"),
            (Summary::of(samples).p50, floor.p50),
            "ms",
            NO_PROMISE,
        )
    });
    Ok(rows.collect())
}

fn nothing(lab: &Lab, count: usize) -> Result<Vec<Duration>> {
    timed(count, || lab.ask("GET", "/api/v1/health", None).map(drop))
}

fn detected(lab: &Lab, script: &str, count: usize) -> Result<Vec<Duration>> {
    let command = json!({"shell": {"shell": "/bin/sh", "script": script}});
    let body = json!({"command": command, "cwd": lab.work()});
    timed(count, || {
        lab.ask("POST", "/api/v1/detect", Some(&body)).map(drop)
    })
}

fn timed(count: usize, mut act: impl FnMut() -> Result<()>) -> Result<Vec<Duration>> {
    let one = |_| {
        let begin = Instant::now();
        act()?;
        Ok(begin.elapsed())
    };
    (0..count).map(one).collect()
}
