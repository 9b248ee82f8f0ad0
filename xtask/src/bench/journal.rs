//! Reading a gigabyte: the last lines, and a word in it.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use rustix::fs::{Advice, fadvise};

use super::engine::measure;
use super::orders::Orders;
use super::output::{quiet, start};
use super::report::{Limit, Row};
use super::run::Bench;
use super::stats::{Summary, median};
use crate::sh;

/// `seq 1 LAST` prints about 1 GB.
const LAST: u64 = 111_111_111;
/// A number near the end, so that all of it is searched.
const NEEDLE: &str = "110987654";
/// Tails of one round.
const TAILS: usize = 20;

/// tail and grep, through the library, against what people use on files.
pub(super) fn reading(bench: &Bench) -> Result<Vec<Row>> {
    let lab = bench.lab()?;
    // It goes on living, so that nothing is compressed meanwhile.
    let id = start(&lab, &format!("seq 1 {LAST}; exec sleep 300"))?;
    quiet(&lab, &id)?;
    let dir = lab.state().join("executions").join(lab.info(&id)?.uuid);
    let mut reader = measure(bench, &lab, 0)?;
    let mut rows = tails(&mut reader, &dir)?;
    rows.extend(grep(bench, &mut reader, &dir)?);
    reader.close()?;
    lab.stop(&id)?;
    Ok(rows)
}

fn tails(reader: &mut Orders, dir: &Path) -> Result<Vec<Row>> {
    let ask = format!("tail 1000 {}", dir.display());
    let (mut warm, mut cold) = (Vec::new(), Vec::new());
    for _ in 0..TAILS {
        forget(dir)?;
        cold.extend(reader.ask(&ask)?);
        warm.extend(reader.ask(&ask)?);
    }
    Ok(vec![
        Row::absolute(
            "tail -n 1000 of a 1 GB journal, warm, p50",
            Summary::of(&warm).p50,
            "ms",
            (Limit::AtMost(1.0), "< 1 ms"),
        ),
        Row::absolute(
            "the same, cold",
            Summary::of(&cold).p50,
            "ms",
            (Limit::AtMost(5.0), "< 5 ms"),
        ),
    ])
}

/// Asks the kernel to drop these files from its cache.
fn forget(dir: &Path) -> Result<()> {
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

fn grep(bench: &Bench, reader: &mut Orders, dir: &Path) -> Result<Vec<Row>> {
    let ask = format!("grep {NEEDLE} {}", dir.display());
    let peer = if sh::on_path("rg") {
        vec!["rg", "-j1", "-N", "-I"]
    } else {
        vec!["grep", "-h", "-F"]
    };
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for round in 0..=bench.rounds.min(4) {
        let (seen, other) = (reader.ask(&ask)?, peer_grep(&peer, dir)?);
        if round > 0 {
            ours.extend(seen.iter().map(Duration::as_secs_f64));
            theirs.push(other.as_secs_f64());
        }
    }
    let what = format!(
        "literal grep of a 1 GB journal, speed (time of `{}` over ours)",
        peer.join(" ")
    );
    Ok(vec![Row::ratio(
        &what,
        (median(&theirs), median(&ours)),
        "s",
        (Limit::AtLeast(0.8), "≥ 80 % of `rg -j1`"),
    )])
}

fn peer_grep(words: &[&str], dir: &Path) -> Result<Duration> {
    let texts = segments(dir)?
        .into_iter()
        .filter(|path| path.extension().is_some_and(|e| e == "seg"));
    let mut command = sh::command(words[0], dir);
    command.args(&words[1..]).arg(NEEDLE).args(texts);
    let begin = Instant::now();
    let found = sh::capture(&mut command)?;
    let took = begin.elapsed();
    ensure!(
        found.trim().ends_with(NEEDLE),
        "{} found {found:?}",
        words[0]
    );
    Ok(took)
}
