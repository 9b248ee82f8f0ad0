//! Reading a gigabyte: the last lines, and a search.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use rustix::fs::{Advice, fadvise};

use super::context::BenchContext;
use super::engine::start_driver;
use super::line_process::LineProcess;
use super::output::{start_script, wait_idle};
use super::report::{Promise, ReportRow};
use super::stats::{LatencySummary, median};
use crate::shell;

/// `seq 1 LAST` prints about 1 GB.
const LAST: u64 = 111_111_111;
/// A number near the end, so that all of it is searched.
const NEEDLE: &str = "110987654";
/// Tail queries of one round.
const TAILS: usize = 20;

/// tail and grep through the library, compared with the common tools on files.
pub(super) fn reading(bench: &BenchContext) -> Result<Vec<ReportRow>> {
    let env = bench.started_env()?;
    // It keeps running, so that nothing is compressed meanwhile.
    let id = start_script(&env, &format!("seq 1 {LAST}; exec sleep 300"))?;
    wait_idle(&env, &id)?;
    let dir = env.state().join("executions").join(env.info(&id)?.uuid);
    let mut reader = start_driver(bench, &env, 0)?;
    let mut rows = tails(&mut reader, &dir)?;
    rows.extend(grep(bench, &mut reader, &dir)?);
    reader.close()?;
    env.stop(&id)?;
    Ok(rows)
}

fn tails(reader: &mut LineProcess, dir: &Path) -> Result<Vec<ReportRow>> {
    let request = format!("tail 1000 {}", dir.display());
    let (mut warm, mut cold) = (Vec::new(), Vec::new());
    for _ in 0..TAILS {
        evict_page_cache(dir)?;
        cold.extend(reader.request(&request)?);
        warm.extend(reader.request(&request)?);
    }
    Ok(vec![
        ReportRow::absolute(
            "tail -n 1000 of a 1 GB journal, warm, p50",
            LatencySummary::from_samples(&warm).p50,
            "ms",
            Promise::at_most(1.0, "< 1 ms"),
        ),
        ReportRow::absolute(
            "the same, cold",
            LatencySummary::from_samples(&cold).p50,
            "ms",
            Promise::at_most(5.0, "< 5 ms"),
        ),
    ])
}

/// Asks the kernel to drop these files from its cache.
fn evict_page_cache(dir: &Path) -> Result<()> {
    for path in segments(dir)? {
        let file = File::open(path)?;
        file.sync_all()?;
        fadvise(&file, 0, None, Advice::DontNeed)?;
    }
    Ok(())
}

fn segments(dir: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(dir)?;
    let paths = entries.flatten().map(|entry| entry.path());
    let mut found: Vec<PathBuf> = paths
        .filter(|path| path.to_string_lossy().contains("/output."))
        .collect();
    found.sort();
    Ok(found)
}

fn grep(bench: &BenchContext, reader: &mut LineProcess, dir: &Path) -> Result<Vec<ReportRow>> {
    let request = format!("grep {NEEDLE} {}", dir.display());
    let peer_command = if shell::is_on_path("rg") {
        vec!["rg", "-j1", "-N", "-I"]
    } else {
        vec!["grep", "-h", "-F"]
    };
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for round in 0..=bench.rounds.min(4) {
        let (seen, other) = (reader.request(&request)?, peer_grep(&peer_command, dir)?);
        if round > 0 {
            ours.extend(seen.iter().map(Duration::as_secs_f64));
            theirs.push(other.as_secs_f64());
        }
    }
    let what = format!(
        "literal grep of a 1 GB journal, speed (time of `{}` over ours)",
        peer_command.join(" ")
    );
    Ok(vec![ReportRow::ratio(
        &what,
        median(&theirs),
        median(&ours),
        "s",
        Promise::at_least(0.8, "≥ 80 % of `rg -j1`"),
    )])
}

fn peer_grep(words: &[&str], dir: &Path) -> Result<Duration> {
    let texts = segments(dir)?
        .into_iter()
        .filter(|path| path.extension().is_some_and(|e| e == "seg"));
    let mut command = shell::command(words[0], dir);
    command.args(&words[1..]).arg(NEEDLE).args(texts);
    let begin = Instant::now();
    let found = shell::capture(&mut command)?;
    let took = begin.elapsed();
    ensure!(
        found.trim().ends_with(NEEDLE),
        "{} found {found:?}",
        words[0]
    );
    Ok(took)
}
