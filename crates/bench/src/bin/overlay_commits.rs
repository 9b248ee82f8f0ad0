//! Measures a transactional workspace, for `cargo xtask bench isolation`.
//!
//! `overlay_commits DIRECTORY` reads one request per line, `WHAT FILES`, and answers each with a line of
//! one duration in nanoseconds. The overlay's upper layer is filled as a command would fill it,
//! half with new files, half with changed ones: `prepare` records the workspace before it,
//! `changes` lists the changes, `commit` writes them to the host, and `copy` is the baseline, every
//! file copied beside its path and renamed.

use std::error::Error;
use std::fs;
use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ostler_sandbox::overlay::{
    self, CommitOutcome as Committed, OverlayConfig, OverlayLayers, OverlayStore,
};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Files in one directory.
const DIRECTORY_FILES: u32 = 100;
/// The content of a file before and after.
const BEFORE: &str = "before\n";
const AFTER: &str = "after, and somewhat longer than it was before\n";

fn main() -> Outcome<()> {
    let base = PathBuf::from(std::env::args().nth(1).ok_or("overlay_commits DIRECTORY")?);
    let base = base.canonicalize()?;
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let (what, files) = line.split_once(' ').ok_or("WHAT FILES")?;
        let took = timed(&base, what, files.parse()?)?;
        let mut out = std::io::stdout().lock();
        writeln!(out, "{}", took.as_nanos())?;
        out.flush()?;
    }
    Ok(())
}

fn timed(base: &Path, what: &str, files: u32) -> Outcome<Duration> {
    let (workspace, store) = (base.join("workspace"), base.join("overlay"));
    fs::create_dir(&workspace)?;
    for number in (0..files).filter(|number| number % 2 == 0) {
        write(&workspace, number, BEFORE)?;
    }
    let wanted = OverlayConfig {
        workspace: &workspace,
        protect: &[],
    };
    let begin = Instant::now();
    let layers = overlay::prepare(&store, &wanted)?;
    let prepared = begin.elapsed();
    for number in 0..files {
        write(&layers.upper, number, AFTER)?;
    }
    let took = match what {
        "prepare" => prepared,
        "changes" => changes(&store, files)?,
        "commit" => commit(&store)?,
        "copy" => copy(&layers, &workspace, files)?,
        _ => return Err(format!("unknown: {what}").into()),
    };
    fs::remove_dir_all(&workspace)?;
    fs::remove_dir_all(&store)?;
    Ok(took)
}

fn changes(store: &Path, files: u32) -> Outcome<Duration> {
    let store = OverlayStore::open(store)?;
    let begin = Instant::now();
    let changes = store.changes(usize::try_from(files)? * 2)?;
    let took = begin.elapsed();
    let enough = changes.changes.len() >= usize::try_from(files)?;
    enough
        .then_some(took)
        .ok_or_else(|| "changes are missing".into())
}

fn commit(store: &Path) -> Outcome<Duration> {
    let store = OverlayStore::open(store)?;
    let begin = Instant::now();
    let outcome = store.commit(false)?;
    let took = begin.elapsed();
    match outcome {
        Committed::Committed(_) => Ok(took),
        other @ (Committed::Conflicts(_) | Committed::Autorun(_)) => {
            Err(format!("{other:?}").into())
        }
    }
}

fn copy(layers: &OverlayLayers, workspace: &Path, files: u32) -> Outcome<Duration> {
    let begin = Instant::now();
    for number in 0..files {
        let (from, to) = (place(&layers.upper, number), place(workspace, number));
        let beside = to.with_extension("new");
        if number % DIRECTORY_FILES == 0 {
            fs::create_dir_all(to.parent().ok_or("no parent")?)?;
        }
        fs::copy(from, &beside)?;
        fs::rename(beside, to)?;
    }
    Ok(begin.elapsed())
}

fn place(root: &Path, number: u32) -> PathBuf {
    let directory = (number / DIRECTORY_FILES).to_string();
    root.join(directory).join(number.to_string())
}

fn write(root: &Path, number: u32, text: &str) -> Outcome<()> {
    let path = place(root, number);
    fs::create_dir_all(path.parent().ok_or("no parent")?)?;
    Ok(fs::write(path, text)?)
}
