//! The machine on which the figures were measured.

use std::fmt;
use std::fs;
use std::path::Path;
use std::time::Instant;

use anyhow::Result;

use crate::shell;

/// The number of files created to measure the cost of one.
const PROBE_FILES: u32 = 500;

/// A description of the machine and the day.
#[derive(Debug)]
pub(super) struct Machine {
    /// The date, as in the file's name.
    pub(super) date: String,
    cpu: String,
    cores: usize,
    kernel: String,
    file_system: String,
    create_us: f64,
    load: String,
    commit: String,
}

impl Machine {
    /// This machine, with state kept in `dir`.
    pub(super) fn here(root: &Path, dir: &Path) -> Result<Self> {
        let mut git = shell::command("git", root);
        let commit = shell::capture(git.args(["rev-parse", "--short", "HEAD"])).unwrap_or_default();
        let mut stat = shell::command("stat", dir);
        let kind = shell::capture(stat.args(["-f", "-c", "%T", "."]))?;
        Ok(Self {
            date: jiff::Zoned::now().date().to_string(),
            cpu: field("/proc/cpuinfo", "model name").unwrap_or_else(|| "unknown".to_owned()),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            kernel: fs::read_to_string("/proc/sys/kernel/osrelease")?
                .trim()
                .to_owned(),
            file_system: kind.trim().to_owned(),
            create_us: create_cost(dir)?,
            load: fs::read_to_string("/proc/loadavg")?.trim().to_owned(),
            commit: commit.trim().to_owned(),
        })
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "* machine: {}, {} cores, Linux {}",
            self.cpu, self.cores, self.kernel
        )?;
        writeln!(
            f,
            "* state on {}, where making a file costs {:.0} µs",
            self.file_system, self.create_us
        )?;
        writeln!(
            f,
            "* load when it began: {}; commit {}",
            self.load, self.commit
        )?;
        writeln!(
            f,
            "* floor: the same command by posix_spawn, a pipe and a wait, in a small program"
        )
    }
}

fn field(file: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// Microseconds to create one file: on some file systems a concurrent clean-up multiplies this by
/// ten, and every other figure with it.
fn create_cost(dir: &Path) -> Result<f64> {
    let probe = tempfile::tempdir_in(dir)?;
    let begin = Instant::now();
    for number in 0..PROBE_FILES {
        fs::File::create(probe.path().join(number.to_string()))?;
    }
    Ok(begin.elapsed().as_secs_f64() * 1e6 / f64::from(PROBE_FILES))
}
