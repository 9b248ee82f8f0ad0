//! Much output: 100 MB against a file, a gigabyte against a bare loop.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::json;

use super::report::{Limit, Row};
use super::run::Bench;
use super::stats::median;
use crate::lab::{Lab, Proc};
use crate::sh;

/// `seq 1 LAST` prints about 100 MB.
const LAST: u64 = 12_345_678;
/// Bytes of the ingest measurement.
const INGEST_BYTES: u64 = 1_000_000_000;
/// What the bare loop reads at a time, and asks of its pipe.
const READ_BYTES: usize = 256 * 1024;
/// How long one run may take, in milliseconds.
const RUN_MS: u64 = 120_000;

/// 100 MB of numbers, everything kept, against `seq > file`; and what memory it takes.
pub(super) fn hundred_megabytes(bench: &Bench) -> Result<Vec<Row>> {
    let lab = bench.lab()?;
    let script = format!("seq 1 {LAST}");
    let (mut bare, mut ours) = (Vec::new(), Vec::new());
    for round in 0..=bench.rounds.min(4) {
        let (file, (kept, _)) = (to_file(&lab, &script)?, through(&lab, &script)?);
        if round > 0 {
            bare.push(file.as_secs_f64());
            ours.push(kept.as_secs_f64());
        }
    }
    let growth = memory_growth(&lab, &script)?;
    Ok(vec![
        Row::ratio(
            "100 MB of `seq`, all of it kept, wall",
            (median(&ours), median(&bare)),
            "s",
            (Limit::AtMost(1.3), "≤ 1.3× `seq > file`"),
        ),
        Row::absolute(
            "growth of daemon and shim by it (resident)",
            growth,
            "MB",
            (Limit::AtMost(10.0), "< 10 MB"),
        ),
    ])
}

fn to_file(lab: &Lab, script: &str) -> Result<Duration> {
    let path = lab.work().join("bare");
    let begin = Instant::now();
    let status = sh::command("sh", &lab.work())
        .args(["-c", script])
        .stdout(File::create(&path)?)
        .status()?;
    let took = begin.elapsed();
    ensure!(status.success(), "{script} failed");
    fs::remove_file(path)?;
    Ok(took)
}

/// The same kept by us, from the request to the answer that it ended; and the CPU seconds of
/// that time. Journals of ended executions are compressed, which is not a part of it.
fn through(lab: &Lab, script: &str) -> Result<(Duration, f64)> {
    let (before, begin) = (cpu_seconds(lab), Instant::now());
    let id = start(lab, script)?;
    let info = ended(lab, &id)?;
    let (took, spent) = (begin.elapsed(), cpu_seconds(lab) - before);
    ensure!(info["exit_code"] == 0, "{script} ended as {info}");
    lab.ask("DELETE", &format!("/api/v1/executions/{id}"), None)?;
    Ok((took, spent))
}

/// Starts a script through REST; its id.
pub(super) fn start(lab: &Lab, script: &str) -> Result<String> {
    let command = json!({"argv": {"program": "/bin/sh", "args": ["-c", script]}});
    let body = json!({"command": command, "cwd": lab.work()});
    let info = lab.ask("POST", "/api/v1/executions", Some(&body))?;
    info["id"]
        .as_str()
        .map(str::to_owned)
        .context("a start without an id")
}

/// Waits for an end; what is known then.
pub(super) fn ended(lab: &Lab, id: &str) -> Result<serde_json::Value> {
    let body = json!({"until": "exit", "at_most_ms": RUN_MS});
    let waited = lab.ask(
        "POST",
        &format!("/api/v1/executions/{id}/wait"),
        Some(&body),
    )?;
    Ok(waited["info"].clone())
}

/// Waits until it has printed nothing for a second.
pub(super) fn quiet(lab: &Lab, id: &str) -> Result<()> {
    let body = json!({"until": "idle", "idle_ms": 1_000, "at_most_ms": RUN_MS});
    lab.ask(
        "POST",
        &format!("/api/v1/executions/{id}/wait"),
        Some(&body),
    )
    .map(drop)
}

/// Megabytes that daemon and shim hold more after the output than before it.
fn memory_growth(lab: &Lab, script: &str) -> Result<f64> {
    let daemon = lab.daemon()?;
    let before = resident(&daemon)?;
    let id = start(lab, &format!("{script}; exec sleep 300"))?;
    let shim = lab.shim(&lab.info(&id)?)?;
    let quiet = json!({"until": "idle", "idle_ms": 1_000, "at_most_ms": RUN_MS});
    lab.ask(
        "POST",
        &format!("/api/v1/executions/{id}/wait"),
        Some(&quiet),
    )?;
    let grown = resident(&daemon)? - before + private(&shim)?;
    lab.stop(&id)?;
    Ok(grown)
}

/// Resident megabytes.
pub(super) fn resident(proc: &Proc) -> Result<f64> {
    let kilobytes = proc.status("VmRSS:").context("it is gone")?;
    Ok(kilobytes.parse::<f64>()? * 1_024.0 / 1e6)
}

/// Megabytes that only this process holds.
pub(super) fn private(proc: &Proc) -> Result<f64> {
    let text = fs::read_to_string(format!("/proc/{}/smaps_rollup", proc.pid))?;
    let lines = text.lines().filter(|line| line.starts_with("Private_"));
    let kilobytes = lines.filter_map(|line| line.split_whitespace().nth(1)?.parse::<f64>().ok());
    Ok(kilobytes.sum::<f64>() * 1_024.0 / 1e6)
}

/// A gigabyte of lines against a bare read/write loop, and what it costs in CPU.
pub(super) fn ingest(bench: &Bench) -> Result<Vec<Row>> {
    let lab = bench.lab()?;
    let source = lab.work().join("source");
    sh::run(sh::command("sh", &lab.work()).args([
        "-c",
        &format!("yes 'a line of the length that lines have, about sixty bytes' | head -c {INGEST_BYTES} > source"),
    ]))?;
    let script = format!("exec cat {}", source.display());
    let (mut bare, mut ours, mut cpu) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..=bench.rounds.min(3) {
        let loop_took = bare_loop(&lab, &script)?;
        let (took, spent) = through(&lab, &script)?;
        if round > 0 {
            bare.push(loop_took.as_secs_f64());
            ours.push(took.as_secs_f64());
            cpu.push(spent);
        }
    }
    fs::remove_file(source)?;
    Ok(vec![
        // As speed: the bare loop's time over ours.
        Row::ratio(
            "ingest of 1 GB with time and line index, speed (time of the bare loop over ours)",
            (median(&bare), median(&ours)),
            "s",
            (Limit::AtLeast(0.9), "≥ 90 % of a bare read/write loop"),
        ),
        Row::absolute(
            "CPU of daemon and shims for it",
            median(&cpu),
            "s",
            (Limit::AtMost(0.45), "≤ 0.45 CPU-s per GB"),
        ),
    ])
}

/// The producer through a pipe into a file, by nothing but read and write.
fn bare_loop(lab: &Lab, script: &str) -> Result<Duration> {
    let path = lab.work().join("bare");
    let begin = Instant::now();
    let mut child = sh::command("sh", &lab.work())
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
    let took = begin.elapsed();
    fs::remove_file(path)?;
    Ok(took)
}

/// CPU seconds of every daemon, keeper and shim of a lab so far.
pub(super) fn cpu_seconds(lab: &Lab) -> f64 {
    let roles = ["ostler-daemon", "ostler-keeper", "ostler-shim"];
    let procs = roles.iter().flat_map(|role| lab.roles(role));
    procs.map(|proc| proc.cpu_seconds()).sum()
}
