//! A server that reports when its port was open, cheap enough to run a hundred of.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::super::context::BenchContext;
use crate::console::CheckResult;
use crate::test_env::TestEnv;

const VERB: &str = "listen";
/// The timeout for a service of it to become ready, in milliseconds.
const READY_MS: u64 = 30_000;
/// The most bytes that are read of a request.
const REQUEST_BYTES: usize = 4 * 1024;

/// What it can be told.
#[derive(Debug, clap::Args)]
pub(crate) struct ListenArgs {}

/// Listens on a free port, prints the time, and answers every request with the same response.
pub(crate) fn listen(_args: &ListenArgs) -> Result<CheckResult> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let opened = jiff::Timestamp::now();
    let mut out = io::stdout().lock();
    writeln!(out, "{opened}")?;
    out.flush()?;
    for stream in listener.incoming() {
        let mut stream = stream?;
        let mut request = [0; REQUEST_BYTES];
        // A client that hangs up early is ignored.
        let _read = stream.read(&mut request);
        let _written = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    }
    Ok(CheckResult::Holds)
}

/// Starts one as a service, and optionally waits until it is ready; returns its whole id.
pub(super) fn serve(env: &TestEnv, name: &str, wait: bool) -> Result<String> {
    let program = std::env::current_exe()?;
    let program = program.to_str().context("a path that is not UTF-8")?;
    let mut body = json!({
        "name": name,
        "command": {"argv": {"program": program, "args": [VERB]}},
        "cwd": env.work(),
    });
    if wait {
        body["wait_ms"] = READY_MS.into();
    }
    let started = env.request("POST", "/api/v1/services", Some(&body))?;
    if wait {
        anyhow::ensure!(started["waited"]["why"] == "ready", "not ready: {started}");
    }
    text(&started["service"]["execution"]["uuid"])
}

/// Waits until it is ready.
pub(super) fn is_ready(env: &TestEnv, id: &str) -> Result<()> {
    let body = json!({"until": "ready", "at_most_ms": READY_MS});
    let path = format!("/api/v1/executions/{id}/wait");
    let waited = env.request("POST", &path, Some(&body))?;
    anyhow::ensure!(waited["why"] == "ready", "not ready: {waited}");
    Ok(())
}

/// Stops one by its name.
pub(super) fn stop(env: &TestEnv, name: &str) -> Result<()> {
    let path = format!("/api/v1/services/{name}/stop");
    env.request("POST", &path, Some(&json!({"force": true})))
        .map(drop)
}

/// The number of services in a run.
pub(super) fn count(bench: &BenchContext, full: usize) -> usize {
    bench.count(full).max(1)
}

fn text(value: &Value) -> Result<String> {
    let text = value.as_str().context("no text where one was expected")?;
    Ok(text.to_owned())
}
