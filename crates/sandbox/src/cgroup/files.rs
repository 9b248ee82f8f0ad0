//! Reads and writes cgroup interface files.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

/// Writes one value in one system call, as cgroup files require; never creates the file.
pub(super) fn write(path: &Path, value: &str) -> io::Result<()> {
    OpenOptions::new()
        .write(true)
        .open(path)?
        .write_all(value.as_bytes())
}

/// The pids in a `cgroup.procs` file; none where it cannot be read.
pub(super) fn read_pids(directory: &Path) -> Vec<i32> {
    let text = fs::read_to_string(directory.join("cgroup.procs")).unwrap_or_default();
    text.lines().filter_map(|line| line.parse().ok()).collect()
}

/// The number after `key` in a file of `key value` lines.
pub(super) fn read_number(path: &Path, key: &str) -> Option<u64> {
    parse_number(&fs::read_to_string(path).ok()?, key)
}

/// The number after `key` in lines of `key value`.
pub(super) fn parse_number(text: &str, key: &str) -> Option<u64> {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(key)?.strip_prefix(' '))?;
    line.trim().parse().ok()
}

/// Creates a directory; an existing one is no error.
pub(super) fn make_dir(directory: &Path) -> io::Result<()> {
    match fs::create_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }
}
