//! Benchmarks append, tail and grep against bare loops and ripgrep or grep, in one run.
//!
//! `cargo run --release -p ostler-journal --example journal_bench -- [directory]`; the
//! directory (default `/dev/shm`) needs room for 2 GB, and is left as it was.
#![expect(clippy::print_stdout, reason = "its report goes to standard output")]
#![expect(clippy::cast_precision_loss, reason = "figures for people")]

use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use ostler_journal::{Journal, LineQuery, OutputWriter, Pattern, SegmentLimits};
use ostler_model::StreamName;

const TOTAL_BYTES: usize = 1 << 30;
const CHUNK_BYTES: usize = 256 * 1024;
const ROUNDS: usize = 5;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let base = std::env::args()
        .nth(1)
        .map_or_else(|| PathBuf::from("/dev/shm"), PathBuf::from);
    let dir = tempfile::tempdir_in(base)?;
    let text = sample();
    println!(
        "{:>5} {:>10} {:>10} {:>10} {:>10}",
        "round", "bare GB/s", "ours GB/s", "bare s/GB", "ours s/GB"
    );
    for round in 0..ROUNDS {
        let (bare_wall, bare_cpu) = timed(|| bare(dir.path(), &text))?;
        std::fs::remove_file(dir.path().join("bare"))?;
        let (wall, cpu) = timed(|| ingest(&dir.path().join(format!("{round}")), &text))?;
        let gigabytes = TOTAL_BYTES as f64 / 1e9;
        println!(
            "{round:>5} {:>10.2} {:>10.2} {:>10.3} {:>10.3}",
            gigabytes / bare_wall.as_secs_f64(),
            gigabytes / wall.as_secs_f64(),
            bare_cpu.as_secs_f64() / gigabytes,
            cpu.as_secs_f64() / gigabytes,
        );
        if round + 1 < ROUNDS {
            std::fs::remove_dir_all(dir.path().join(format!("{round}")))?;
        }
    }
    let journal_dir = dir.path().join(format!("{}", ROUNDS - 1));
    let journal = Journal::open(&journal_dir)?;
    for tail in [100, 1_000, 10_000] {
        let query = LineQuery {
            tail: Some(tail),
            max_bytes: u64::MAX,
            ..LineQuery::default()
        };
        println!(
            "tail -n {tail}: {:?} (best of 50: {:?})",
            median(50, || journal.lines(&query).map(drop))?,
            best(50, || journal.lines(&query).map(drop))?
        );
    }
    println!(
        "stats: {:?}  end: {:?}",
        best(20, || journal.stats().map(drop))?,
        best(20, || journal.end().map(drop))?
    );
    for (what, pattern) in [
        ("literal", "nowhere to be found"),
        ("literal, 1 in 1000 lines", "needle"),
        ("class", r"\d{9}x"),
        ("alternation", "foo_bar|baz_qux"),
        ("case-insensitive", "(?i)NOWHERE to be"),
    ] {
        let query = LineQuery {
            grep: Some(Pattern::new(pattern)?),
            ..LineQuery::default()
        };
        let ours = cheapest(|| journal.lines(&query).is_ok());
        let peers = ["rg", "grep"].map(|program| peer(program, pattern, &journal_dir));
        println!(
            "grep {what} '{pattern}', CPU seconds: ours {ours:?}, rg {:?}, grep {:?}",
            peers[0], peers[1]
        );
    }
    Ok(())
}

/// Lines of about 100 bytes; one in a thousand holds the needle.
fn sample() -> Vec<u8> {
    let mut text = Vec::with_capacity(64 << 20);
    let mut number = 0u64;
    while text.len() < 64 << 20 {
        let word = if number.is_multiple_of(1000) {
            "needle"
        } else {
            "haystack"
        };
        let line = format!(
            "2026-11-21T04:05:06.{number:09}Z INFO module::path{{request={number}}} {word}: something happened here, status 200\n"
        );
        text.extend_from_slice(line.as_bytes());
        number += 1;
    }
    text.truncate(64 << 20);
    text
}

fn chunks(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    (0..TOTAL_BYTES / text.len()).flat_map(|_| text.chunks(CHUNK_BYTES))
}

fn bare(dir: &Path, text: &[u8]) -> std::io::Result<()> {
    let mut file = File::create(dir.join("bare"))?;
    chunks(text).try_for_each(|chunk| file.write_all(chunk))
}

fn ingest(dir: &Path, text: &[u8]) -> std::io::Result<()> {
    std::fs::create_dir(dir)?;
    let handle = File::open(dir)?;
    let failed = std::io::Error::other::<ostler_journal::WriteError>;
    let mut writer =
        OutputWriter::create(handle.as_fd(), SegmentLimits::default()).map_err(failed)?;
    for (at, chunk) in chunks(text).enumerate() {
        let at = i64::try_from(at).unwrap_or(0);
        writer
            .append(at, StreamName::Stdout, chunk)
            .map_err(failed)?;
    }
    Ok(())
}

/// Measures the wall-clock and the processor time of `work`.
fn timed(work: impl FnOnce() -> std::io::Result<()>) -> std::io::Result<(Duration, Duration)> {
    let clock = || rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    let (started, cpu) = (Instant::now(), clock());
    work()?;
    let used = clock() - cpu;
    let used = Duration::new(
        used.tv_sec.unsigned_abs(),
        u32::try_from(used.tv_nsec).unwrap_or(0),
    );
    Ok((started.elapsed(), used))
}

fn all<E>(rounds: usize, work: impl Fn() -> Result<(), E>) -> Result<Vec<Duration>, E> {
    let mut times = Vec::with_capacity(rounds);
    for _ in 0..rounds {
        let started = Instant::now();
        work()?;
        times.push(started.elapsed());
    }
    times.sort();
    Ok(times)
}

fn best<E>(rounds: usize, work: impl Fn() -> Result<(), E>) -> Result<Duration, E> {
    all(rounds, work).map(|times| times[0])
}

fn median<E>(rounds: usize, work: impl Fn() -> Result<(), E>) -> Result<Duration, E> {
    all(rounds, work).map(|times| times[times.len() / 2])
}

/// The least processor time of this process and its children over several rounds, in hundredths
/// of a second as the kernel counts them: wall-clock time is unreliable on a busy machine.
fn cheapest(work: impl Fn() -> bool) -> Option<f64> {
    const TICKS_PER_SECOND: f64 = 100.0;
    let used = || -> Option<f64> {
        let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
        let fields = stat.rsplit(')').next()?.split_whitespace();
        fields
            .skip(11)
            .take(4)
            .map(|ticks| ticks.parse::<f64>().ok())
            .sum()
    };
    let rounds = (0..ROUNDS).map(|_| {
        let before = used()?;
        let worked = work();
        Some((used()? - before) / TICKS_PER_SECOND).filter(|_| worked)
    });
    rounds.flatten().min_by(f64::total_cmp)
}

/// The processor time of another program over the segments; none where it is not installed.
fn peer(program: &str, pattern: &str, dir: &Path) -> Option<f64> {
    let entries = std::fs::read_dir(dir).ok()?;
    let mut files: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect();
    files.retain(|path| path.extension().is_some_and(|suffix| suffix == "seg"));
    let flags: &[&str] = if program == "rg" {
        &["-j1", "-a", "-n", "--no-mmap", "--no-config"]
    } else {
        &["-aP", "-n"]
    };
    cheapest(|| {
        let mut command = Command::new(program);
        command
            .args(flags)
            .arg("--")
            .arg(pattern)
            .args(&files)
            .stdout(Stdio::null());
        command.status().is_ok()
    })
}
