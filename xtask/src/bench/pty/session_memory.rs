//! Many sessions at once: their memory, and whether each responds.

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::super::context::BenchContext;
use super::super::output::{private_memory, resident_memory};
use super::super::report::{Promise, ReportRow};
use super::peers;
use crate::test_env::{ProcessHandle, TestEnv};

/// A number of sessions that must work.
const FIFTY: usize = 50;
/// A number of sessions to aim for.
const THOUSAND: usize = 1_000;
/// The word that each session receives, and prints when it has read it.
const WORD: &str = "pineapple";
/// The timeout of an answer in milliseconds.
const ANSWER_MS: u64 = 60_000;
/// Fifty shells, their screens read, compared with the peer's host program with fifty.
pub(super) fn fifty(bench: &BenchContext) -> Result<Vec<ReportRow>> {
    let seen = measure(bench, FIFTY)?;
    let mut rows = vec![ReportRow::absolute(
        "50 PTY sessions, screens read: daemon, keeper and shims over idle",
        seen.megabytes,
        "MB",
        Promise::at_most(25.0, "≤ 25 MB"),
    )];
    if let Some(mut peer) = peers::open(bench)? {
        // It is idle once it has served a request.
        peer.request("echo 1")?;
        let host = ProcessHandle::open(peer.pid())?;
        let before = resident_memory(&host)?;
        peer.request(&format!("hold {FIFTY}"))?;
        let whole = resident_memory(&host)?;
        peer.close()?;
        rows.push(ReportRow::absolute(
            "the same in a node-pty host (peer), over idle",
            whole - before,
            "MB",
            Promise::NONE,
        ));
        rows.push(ReportRow::absolute(
            "the same in a node-pty host (peer), in all",
            whole,
            "MB",
            Promise::NONE,
        ));
    }
    Ok(rows)
}

pub(super) fn thousand(bench: &BenchContext) -> Result<Vec<ReportRow>> {
    let count = bench.count(THOUSAND);
    let seen = measure(bench, count)?;
    Ok(vec![
        ReportRow::absolute(
            &format!("{count} PTY sessions, screens read: daemon, keeper and shims over idle"),
            seen.megabytes,
            "MB",
            Promise::NONE,
        ),
        ReportRow::absolute(
            "of these the daemon alone",
            seen.daemon,
            "MB",
            Promise::NONE,
        ),
        ReportRow::absolute(
            "sessions that did not answer",
            seen.unresponsive,
            "",
            Promise::at_most(0.0, "0"),
        ),
    ])
}

/// The result for many sessions.
struct SessionMemory {
    /// The memory of all Ostler processes above idle, in megabytes.
    megabytes: f64,
    /// The memory of the daemon above idle, in megabytes.
    daemon: f64,
    /// The number of sessions that did not respond.
    unresponsive: f64,
}

fn measure(bench: &BenchContext, count: usize) -> Result<SessionMemory> {
    let env = bench.started_env()?;
    let (daemon, all) = (resident_memory(&env.daemon()?)?, total_memory(&env)?);
    let ids: Vec<String> = (0..count).map(|_| start(&env)).collect::<Result<_>>()?;
    let mut silent = 0;
    for id in &ids {
        if !is_responsive(&env, id)? {
            silent += 1;
        }
    }
    let memory = SessionMemory {
        megabytes: total_memory(&env)? - all,
        daemon: resident_memory(&env.daemon()?)? - daemon,
        unresponsive: f64::from(silent),
    };
    for id in &ids {
        let force = json!({"force": true});
        env.request(
            "POST",
            &format!("/api/v1/executions/{id}/stop"),
            Some(&force),
        )?;
    }
    Ok(memory)
}

/// The resident memory of the daemon and the zygote, and the private memory of each shim.
fn total_memory(env: &TestEnv) -> Result<f64> {
    let mut megabytes = resident_memory(&env.daemon()?)?;
    for role in ["ostler-keeper", "ostler-shim"] {
        for proc in env.processes_named(role) {
            megabytes += private_memory(&proc)?;
        }
    }
    Ok(megabytes)
}

fn start(env: &TestEnv) -> Result<String> {
    let command = json!({"argv": {"program": "bash", "args": ["--norc", "--noprofile", "-i"]}});
    let body = json!({"command": command, "cwd": env.work(), "pty": {"cols": 80, "rows": 24}});
    let info = env.request("POST", "/api/v1/executions", Some(&body))?;
    let id = info["id"].as_str().map(str::to_owned);
    id.context("a start without an id")
}

/// Types into a session, waits for the answer, and reads the screen.
fn is_responsive(env: &TestEnv, id: &str) -> Result<bool> {
    let text = format!("echo {WORD} | tr a-z A-Z");
    let keys = json!({"pieces": [{"text": text}, {"key": "enter"}]});
    env.request(
        "POST",
        &format!("/api/v1/executions/{id}/keys"),
        Some(&keys),
    )?;
    let answer = WORD.to_uppercase();
    let wait = json!({"until": "pattern", "pattern": answer, "at_most_ms": ANSWER_MS});
    env.request(
        "POST",
        &format!("/api/v1/executions/{id}/wait"),
        Some(&wait),
    )?;
    let screen = env.request("GET", &format!("/api/v1/executions/{id}/screen"), None)?;
    let rows = screen["rows"].as_array().context("a screen without rows")?;
    Ok(rows
        .iter()
        .filter_map(Value::as_str)
        .any(|row| row.contains(&answer)))
}
