//! Many sessions at once: what they hold, and that every one answers.

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::super::output::{private, resident};
use super::super::report::{Limit, Row};
use super::super::run::Bench;
use super::peer;
use crate::lab::{Lab, Proc};

/// The number document 002 asks for.
const FIFTY: usize = 50;
/// The number we aim for.
const THOUSAND: usize = 1_000;
/// What a session is told, and prints when it has read it.
const WORD: &str = "pineapple";
/// How long an answer may take, in milliseconds.
const ANSWER_MS: u64 = 60_000;
/// A figure without a promise.
const NO_PROMISE: (Limit, &str) = (Limit::AtMost(f64::INFINITY), "none");

/// Fifty shells, their screens read, beside the peer's host with fifty.
pub(super) fn fifty(bench: &Bench) -> Result<Vec<Row>> {
    let seen = hold(bench, FIFTY)?;
    let mut rows = vec![Row::absolute(
        "50 PTY sessions, screens read: daemon, keeper and shims over idle",
        seen.megabytes,
        "MB",
        (Limit::AtMost(25.0), "≤ 25 MB"),
    )];
    if let Some(mut peer) = peer::open(bench)? {
        // It is idle once it has done something.
        peer.ask("echo 1")?;
        let host = Proc::open(peer.pid())?;
        let before = resident(&host)?;
        peer.ask(&format!("hold {FIFTY}"))?;
        let whole = resident(&host)?;
        peer.close()?;
        rows.push(Row::absolute(
            "the same in a node-pty host (peer), over idle",
            whole - before,
            "MB",
            NO_PROMISE,
        ));
        rows.push(Row::absolute(
            "the same in a node-pty host (peer), in all",
            whole,
            "MB",
            NO_PROMISE,
        ));
    }
    Ok(rows)
}

/// A thousand shells.
pub(super) fn thousand(bench: &Bench) -> Result<Vec<Row>> {
    let count = bench.count(THOUSAND);
    let seen = hold(bench, count)?;
    Ok(vec![
        Row::absolute(
            &format!("{count} PTY sessions, screens read: daemon, keeper and shims over idle"),
            seen.megabytes,
            "MB",
            NO_PROMISE,
        ),
        Row::absolute("of these the daemon alone", seen.daemon, "MB", NO_PROMISE),
        Row::absolute(
            "sessions that did not answer",
            seen.silent,
            "",
            (Limit::AtMost(0.0), "0"),
        ),
    ])
}

/// What many sessions came to.
struct Held {
    /// Everything of ours, over idle.
    megabytes: f64,
    /// The daemon, over idle.
    daemon: f64,
    /// How many did not answer.
    silent: f64,
}

fn hold(bench: &Bench, count: usize) -> Result<Held> {
    let lab = bench.lab()?;
    let (daemon, all) = (resident(&lab.daemon()?)?, ours(&lab)?);
    let ids: Vec<String> = (0..count).map(|_| start(&lab)).collect::<Result<_>>()?;
    let mut silent = 0;
    for id in &ids {
        if !answers(&lab, id)? {
            silent += 1;
        }
    }
    let held = Held {
        megabytes: ours(&lab)? - all,
        daemon: resident(&lab.daemon()?)? - daemon,
        silent: f64::from(silent),
    };
    for id in &ids {
        let force = json!({"force": true});
        lab.ask(
            "POST",
            &format!("/api/v1/executions/{id}/stop"),
            Some(&force),
        )?;
    }
    Ok(held)
}

/// Resident memory of the daemon and of the keeper, and what each shim has for itself.
fn ours(lab: &Lab) -> Result<f64> {
    let mut megabytes = resident(&lab.daemon()?)?;
    for role in ["ostler-keeper", "ostler-shim"] {
        for proc in lab.roles(role) {
            megabytes += private(&proc)?;
        }
    }
    Ok(megabytes)
}

fn start(lab: &Lab) -> Result<String> {
    let command = json!({"argv": {"program": "bash", "args": ["--norc", "--noprofile", "-i"]}});
    let body = json!({"command": command, "cwd": lab.work(), "pty": {"cols": 80, "rows": 24}});
    let info = lab.ask("POST", "/api/v1/executions", Some(&body))?;
    let id = info["id"].as_str().map(str::to_owned);
    id.context("a start without an id")
}

/// Types into it, waits for the answer, and reads the screen.
fn answers(lab: &Lab, id: &str) -> Result<bool> {
    let text = format!("echo {WORD} | tr a-z A-Z");
    let keys = json!({"pieces": [{"text": text}, {"key": "enter"}]});
    lab.ask(
        "POST",
        &format!("/api/v1/executions/{id}/keys"),
        Some(&keys),
    )?;
    let answer = WORD.to_uppercase();
    let wait = json!({"until": "pattern", "pattern": answer, "at_most_ms": ANSWER_MS});
    lab.ask(
        "POST",
        &format!("/api/v1/executions/{id}/wait"),
        Some(&wait),
    )?;
    let screen = lab.ask("GET", &format!("/api/v1/executions/{id}/screen"), None)?;
    let rows = screen["rows"].as_array().context("a screen without rows")?;
    Ok(rows
        .iter()
        .filter_map(Value::as_str)
        .any(|row| row.contains(&answer)))
}
