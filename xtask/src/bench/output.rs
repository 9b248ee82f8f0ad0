//! Large output: 100 MB compared with a file, a gigabyte compared with a bare loop.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::json;

use super::context::BenchContext;
use super::report::{Promise, ReportRow};
use super::stats::median;
use crate::shell;
use crate::test_env::{ProcessHandle, TestEnv};

/// `seq 1 LAST` prints about 100 MB.
const LAST: u64 = 12_345_678;
/// The number of bytes of the ingest measurement.
const INGEST_BYTES: u64 = 1_000_000_000;
/// The bytes that the bare loop reads at once, and the size of its pipe.
const READ_BYTES: usize = 256 * 1024;
/// The timeout of one run in milliseconds.
const RUN_MS: u64 = 120_000;

/// 100 MB of numbers, all retained, compared with `seq > file`; and the memory that it takes.
pub(super) fn hundred_megabytes(bench: &BenchContext) -> Result<Vec<ReportRow>> {
    let env = bench.started_env()?;
    let script = format!("seq 1 {LAST}");
    let (mut bare, mut ours) = (Vec::new(), Vec::new());
    for round in 0..=bench.rounds.min(4) {
        let (file, (kept, _)) = (to_file(&env, &script)?, run_through(&env, &script)?);
        if round > 0 {
            bare.push(file.as_secs_f64());
            ours.push(kept.as_secs_f64());
        }
    }
    let growth = memory_growth(&env, &script)?;
    Ok(vec![
        ReportRow::ratio(
            "100 MB of `seq`, all of it kept, wall",
            median(&ours),
            median(&bare),
            "s",
            Promise::at_most(1.3, "≤ 1.3× `seq > file`"),
        ),
        ReportRow::absolute(
            "growth of daemon and shim by it (resident)",
            growth,
            "MB",
            Promise::at_most(10.0, "< 10 MB"),
        ),
    ])
}

fn to_file(env: &TestEnv, script: &str) -> Result<Duration> {
    let path = env.work().join("bare");
    let begin = Instant::now();
    let status = shell::command("sh", &env.work())
        .args(["-c", script])
        .stdout(File::create(&path)?)
        .status()?;
    let took = begin.elapsed();
    ensure!(status.success(), "{script} failed");
    fs::remove_file(path)?;
    Ok(took)
}

/// The same through Ostler, from the request to the response after its end; and the CPU seconds of
/// that time. Journals of ended executions are compressed, which is not part of it.
fn run_through(env: &TestEnv, script: &str) -> Result<(Duration, f64)> {
    let (before, begin) = (cpu_seconds(env), Instant::now());
    let id = start_script(env, script)?;
    let info = wait_exit(env, &id)?;
    let (took, spent) = (begin.elapsed(), cpu_seconds(env) - before);
    ensure!(info["exit_code"] == 0, "{script} ended as {info}");
    env.request("DELETE", &format!("/api/v1/executions/{id}"), None)?;
    Ok((took, spent))
}

/// Starts a script over REST; returns its id.
pub(super) fn start_script(env: &TestEnv, script: &str) -> Result<String> {
    let command = json!({"argv": {"program": "/bin/sh", "args": ["-c", script]}});
    let body = json!({"command": command, "cwd": env.work()});
    let info = env.request("POST", "/api/v1/executions", Some(&body))?;
    info["id"]
        .as_str()
        .map(str::to_owned)
        .context("a start without an id")
}

/// Waits for the end; returns the execution.
pub(super) fn wait_exit(env: &TestEnv, id: &str) -> Result<serde_json::Value> {
    let body = json!({"until": "exit", "at_most_ms": RUN_MS});
    let waited = env.request(
        "POST",
        &format!("/api/v1/executions/{id}/wait"),
        Some(&body),
    )?;
    Ok(waited["info"].clone())
}

/// Waits until it has printed nothing for a second.
pub(super) fn wait_idle(env: &TestEnv, id: &str) -> Result<()> {
    let body = json!({"until": "idle", "idle_ms": 1_000, "at_most_ms": RUN_MS});
    env.request(
        "POST",
        &format!("/api/v1/executions/{id}/wait"),
        Some(&body),
    )
    .map(drop)
}

/// The growth of the daemon's and the shim's memory in megabytes.
fn memory_growth(env: &TestEnv, script: &str) -> Result<f64> {
    let daemon = env.daemon()?;
    let before = resident_memory(&daemon)?;
    let id = start_script(env, &format!("{script}; exec sleep 300"))?;
    let shim = env.shim(&env.info(&id)?)?;
    let quiet = json!({"until": "idle", "idle_ms": 1_000, "at_most_ms": RUN_MS});
    env.request(
        "POST",
        &format!("/api/v1/executions/{id}/wait"),
        Some(&quiet),
    )?;
    let grown = resident_memory(&daemon)? - before + private_memory(&shim)?;
    env.stop(&id)?;
    Ok(grown)
}

/// Resident memory in megabytes.
pub(super) fn resident_memory(proc: &ProcessHandle) -> Result<f64> {
    let kilobytes = proc.status("VmRSS:").context("it is gone")?;
    Ok(kilobytes.parse::<f64>()? * 1_024.0 / 1e6)
}

/// Private memory in megabytes.
pub(super) fn private_memory(proc: &ProcessHandle) -> Result<f64> {
    let text = fs::read_to_string(format!("/proc/{}/smaps_rollup", proc.pid))?;
    let lines = text.lines().filter(|line| line.starts_with("Private_"));
    let kilobytes = lines.filter_map(|line| line.split_whitespace().nth(1)?.parse::<f64>().ok());
    Ok(kilobytes.sum::<f64>() * 1_024.0 / 1e6)
}

/// A gigabyte of lines compared with a bare read/write loop, and its cost in CPU seconds.
pub(super) fn ingest(bench: &BenchContext) -> Result<Vec<ReportRow>> {
    let env = bench.started_env()?;
    let source = env.work().join("source");
    shell::run(shell::command("sh", &env.work()).args([
        "-c",
        &format!("yes 'a line of the length that lines have, about sixty bytes' | head -c {INGEST_BYTES} > source"),
    ]))?;
    let script = format!("exec cat {}", source.display());
    let (mut bare, mut ours) = (Vec::new(), Vec::new());
    let (mut bare_cpu, mut our_cpu) = (Vec::new(), Vec::new());
    for round in 0..=bench.rounds.min(3) {
        let (loop_took, loop_spent) = bare_loop(&env, &script)?;
        let (took, spent) = run_through(&env, &script)?;
        if round > 0 {
            bare.push(loop_took.as_secs_f64());
            bare_cpu.push(loop_spent);
            ours.push(took.as_secs_f64());
            our_cpu.push(spent);
        }
    }
    fs::remove_file(source)?;
    Ok(vec![
        // As speed: the duration of the bare loop divided by ours.
        ReportRow::ratio(
            "ingest of 1 GB with time and line index, speed (time of the bare loop over ours)",
            median(&bare),
            median(&ours),
            "s",
            Promise::at_least(0.9, "≥ 90 % of a bare read/write loop"),
        ),
        ReportRow::absolute(
            "CPU of daemon and shims for it",
            median(&our_cpu),
            "s",
            Promise::at_most(0.45, "≤ 0.45 CPU-s per GB"),
        ),
        ReportRow::ratio(
            "the same, against the bare loop",
            median(&our_cpu),
            median(&bare_cpu),
            "s",
            Promise::NONE,
        ),
    ])
}

/// The producer through a pipe into a file, by read and write only; with the CPU seconds of the
/// loop.
fn bare_loop(env: &TestEnv, script: &str) -> Result<(Duration, f64)> {
    let path = env.work().join("bare");
    let own = ProcessHandle::open(std::process::id())?;
    let (before, begin) = (own.cpu_seconds(), Instant::now());
    let mut child = shell::command("sh", &env.work())
        .args(["-c", script])
        .stdout(Stdio::piped())
        .spawn()?;
    let mut output = child.stdout.take().context("no standard output")?;
    rustix::pipe::fcntl_setpipe_size(&output, READ_BYTES)?;
    let mut file = File::create(&path)?;
    let mut buffer = vec![0; READ_BYTES];
    loop {
        let read = output.read(&mut buffer)?;
        if read == 0 {
            break;
        }
        file.write_all(&buffer[..read])?;
    }
    child.wait()?;
    let (took, spent) = (begin.elapsed(), own.cpu_seconds() - before);
    fs::remove_file(path)?;
    Ok((took, spent))
}

/// CPU seconds of every daemon, zygote and shim of an environment so far.
pub(super) fn cpu_seconds(env: &TestEnv) -> f64 {
    let roles = ["ostler-daemon", "ostler-keeper", "ostler-shim"];
    let procs = roles.iter().flat_map(|role| env.processes_named(role));
    procs.map(|proc| proc.cpu_seconds()).sum()
}
