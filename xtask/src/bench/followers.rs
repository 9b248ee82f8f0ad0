//! A thousand clients of server-sent events that follow one busy execution.

use std::io::{BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use serde_json::json;

use super::context::{BenchContext, Measure};
use super::report::{Promise, ReportRow};
use super::stats::median;
use crate::test_env::{ProcessHandle, TestEnv};

/// The number of clients.
const CLIENTS: usize = 1_000;
/// The lines that the command prints as fast as it can.
const LINES: usize = 100_000;
/// The stack of a client's thread, in bytes.
const STACK_BYTES: usize = 64 * 1024;
/// Bytes that a client reads at once.
const READ_BYTES: usize = 16 * 1024;
/// The longest wait for the next bytes of a stream.
const READ_TIMEOUT: Duration = Duration::from_secs(60);
/// The last event of every stream names this type.
const LAST_EVENT: &[u8] = b"\"type\":\"completed\"";
/// Bytes in a kilobyte of proc(5).
const KIB: f64 = 1_024.0;

pub(super) const ALL: &[(&str, Measure)] = &[("followers", of_one_execution)];

/// One client, once the head of its answer has arrived.
type Client = JoinHandle<Result<Instant>>;

fn of_one_execution(bench: &BenchContext) -> Result<Vec<ReportRow>> {
    let clients = bench.count(CLIENTS);
    let (mut alone, mut followed, mut passed) = (Vec::new(), Vec::new(), Vec::new());
    let (mut waiting, mut peak) = (Vec::new(), Vec::new());
    for _ in 0..bench.rounds {
        let env = bench.started_env()?;
        alone.push(run(&env, 0)?.command);
        let round = run(&env, clients)?;
        followed.push(round.command);
        passed.push(round.delivered);
        waiting.push(round.waiting);
        peak.push(round.peak);
        env.shut_down()?;
    }
    let kilobytes = |bytes: f64| bytes / 1e3 / clients as f64;
    let row = |what: &str, value, unit| ReportRow::absolute(what, value, unit, Promise::NONE);
    Ok(vec![
        ReportRow::ratio(
            &format!("{LINES} lines printed while {clients} clients follow, against none"),
            median(&followed),
            median(&alone),
            "s",
            Promise::NONE,
        ),
        row("until every client has all of it", median(&passed), "s"),
        row(
            "memory of the daemon for each waiting client",
            kilobytes(median(&waiting)),
            "kB",
        ),
        row(
            "the most of it for each, while the output passes",
            kilobytes(median(&peak)),
            "kB",
        ),
    ])
}

/// What one round shows.
struct Round {
    /// How long the command printed, in seconds.
    command: f64,
    /// From its first line until the last client had the end, in seconds.
    delivered: f64,
    /// What the daemon's memory grew by, in bytes: with all clients waiting, and at most.
    waiting: f64,
    peak: f64,
}

/// Starts the command, connects the clients, and lets it print.
fn run(env: &TestEnv, clients: usize) -> Result<Round> {
    let daemon = env.daemon()?;
    let script =
        format!("read go; begin=$(date +%s%N); seq 1 {LINES}; echo $(($(date +%s%N) - begin)) >&2");
    let start = json!({
        "command": {"argv": {"program": "sh", "args": ["-c", script]}},
        "cwd": env.work(), "stdin": "open",
    });
    let started = env.request("POST", "/api/v1/executions", Some(&start))?;
    let id = started["id"].as_str().context("an answer without an id")?;
    let idle = resident(&daemon, "VmRSS:")?;
    let socket = env.path().join("run/ostler/daemon.sock");
    let clients = (0..clients).map(|_| connect(&socket, id));
    let clients: Vec<Client> = clients.collect::<Result<_>>()?;
    let waiting = resident(&daemon, "VmRSS:")? - idle;
    let begin = Instant::now();
    let input = json!({"input": "go"});
    env.request("POST", &format!("/api/v1/tasks/{id}/input"), Some(&input))?;
    let mut last = begin;
    for client in clients {
        let ended = client.join().map_err(|_| anyhow!("a client's thread"))??;
        last = last.max(ended);
    }
    let wait = json!({"until": "exit"});
    env.request(
        "POST",
        &format!("/api/v1/executions/{id}/wait"),
        Some(&wait),
    )?;
    Ok(Round {
        command: printing_seconds(env, id)?,
        delivered: (last - begin).as_secs_f64(),
        waiting,
        peak: resident(&daemon, "VmHWM:")? - idle,
    })
}

/// The duration that the command measured itself.
fn printing_seconds(env: &TestEnv, id: &str) -> Result<f64> {
    let path = format!("/api/v1/executions/{id}/output?stream=stderr");
    let page = env.request("GET", &path, None)?;
    let line = page["lines"][0]["text"].as_str();
    let nanoseconds = line.and_then(|line| line.trim().parse::<f64>().ok());
    let nanoseconds = nanoseconds.with_context(|| format!("no duration in {page}"))?;
    Ok(nanoseconds / 1e9)
}

/// A client that has got the head of its answer and reads the rest in a thread of its own.
fn connect(socket: &Path, id: &str) -> Result<Client> {
    const HEAD: &str = "Host: localhost\r\nAccept: text/event-stream\r\n\r\n";
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(READ_TIMEOUT))?;
    write!(stream, "GET /api/v1/tasks/{id}/events HTTP/1.1\r\n{HEAD}")?;
    let mut first = vec![0; READ_BYTES];
    let count = stream.read(&mut first)?;
    let head = String::from_utf8_lossy(&first[..count]).into_owned();
    if !head.starts_with("HTTP/1.1 200") {
        bail!("the stream of events is refused: {head}");
    }
    let thread = Builder::new().stack_size(STACK_BYTES);
    Ok(thread.spawn(move || read_to_end(stream))?)
}

/// Reads until the last event; returns when it came.
fn read_to_end(stream: UnixStream) -> Result<Instant> {
    let mut stream = BufReader::with_capacity(READ_BYTES, stream);
    let mut bytes = vec![0; READ_BYTES];
    let mut tail = Vec::new();
    loop {
        let count = stream.read(&mut bytes)?;
        if count == 0 {
            bail!("a stream ended without its last event");
        }
        tail.extend_from_slice(&bytes[..count]);
        if tail
            .windows(LAST_EVENT.len())
            .any(|part| part == LAST_EVENT)
        {
            return Ok(Instant::now());
        }
        tail.drain(..tail.len().saturating_sub(LAST_EVENT.len()));
    }
}

/// A field of the daemon's memory in proc(5), in bytes.
fn resident(daemon: &ProcessHandle, field: &str) -> Result<f64> {
    let kilobytes = daemon.status(field).context("the daemon is gone")?;
    Ok(kilobytes.parse::<f64>().context("no number")? * KIB)
}
