//! The cost of detecting that a command is a server, or that it is none.

use std::fs;
use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::json;

use super::super::context::BenchContext;
use super::super::report::{Promise, ReportRow};
use super::super::stats::LatencySummary;
use crate::test_env::TestEnv;

/// Requests of one round.
const REQUESTS: usize = 200;
/// No promise: the figure is informative.
const COMMANDS: [(&str, &str); 3] = [
    ("a server by its name", "uvicorn app:app --reload"),
    (
        "a server behind a script of package.json",
        "cd . && npm run dev",
    ),
    ("no server", "grep -rn 'next dev' src | sort | head"),
];

/// Over REST; the baseline is a request that needs no work.
pub(super) fn of_commands(bench: &BenchContext) -> Result<Vec<ReportRow>> {
    let env = bench.started_env()?;
    let package = json!({"scripts": {"dev": "PORT=3000 npx vite --host"}});
    fs::write(env.work().join("package.json"), package.to_string())?;
    let count = bench.count(REQUESTS);
    let mut floor = Vec::new();
    let mut seen = COMMANDS.map(|_| Vec::new());
    for round in 0..=bench.rounds {
        let baseline_samples = baseline(&env, count)?;
        for (samples, (_, script)) in seen.iter_mut().zip(COMMANDS) {
            let more = detect(&env, script, count)?;
            if round > 0 {
                samples.extend(more);
            }
        }
        if round > 0 {
            floor.extend(baseline_samples);
        }
    }
    let floor = LatencySummary::from_samples(&floor);
    let rows = seen.iter().zip(COMMANDS).map(|(samples, (what, _))| {
        ReportRow::ratio(
            &format!("recognising {what}, request included, p50; floor: a request for health"),
            LatencySummary::from_samples(samples).p50,
            floor.p50,
            "ms",
            Promise::NONE,
        )
    });
    Ok(rows.collect())
}

fn baseline(env: &TestEnv, count: usize) -> Result<Vec<Duration>> {
    timed(count, || {
        env.request("GET", "/api/v1/health", None).map(drop)
    })
}

fn detect(env: &TestEnv, script: &str, count: usize) -> Result<Vec<Duration>> {
    let command = json!({"shell": {"shell": "/bin/sh", "script": script}});
    let body = json!({"command": command, "cwd": env.work()});
    timed(count, || {
        env.request("POST", "/api/v1/detect", Some(&body)).map(drop)
    })
}

fn timed(count: usize, mut request: impl FnMut() -> Result<()>) -> Result<Vec<Duration>> {
    let sample = |_| {
        let begin = Instant::now();
        request()?;
        Ok(begin.elapsed())
    };
    (0..count).map(sample).collect()
}
