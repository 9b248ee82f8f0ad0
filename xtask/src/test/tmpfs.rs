//! A tmpfs at `/tmp` for the tests.
//!
//! Each test makes and removes a state directory, and ext4 does not use an inode again within a
//! minute of its removal: the search for another one took a sixth of the time of both processors.

use std::ffi::OsStr;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use rustix::fs::statfs;

use crate::console::print_line;
use crate::workspace::Workspace;

/// Where temporary files are made.
const TMP: &str = "/tmp";
/// The type of a tmpfs in statfs(2).
const TMPFS_MAGIC: i64 = 0x0102_1994;
/// The size of the tmpfs, in bytes: an upper limit, since only what is written takes memory.
const SIZE_BYTES: u64 = 8 << 30;
/// The memory that must be available.
const MEMORY_BYTES: u64 = SIZE_BYTES + (4 << 30);
/// Mounts the tmpfs in a mount namespace of its own and executes its arguments.
const SCRIPT: &str = "mount -t tmpfs -o size=$0,mode=1777 tmpfs /tmp && exec \"$@\"";

/// Executes this program again in a mount namespace with a tmpfs at `/tmp`; returns where that is
/// not possible or of no use, after one line that says why.
pub(super) fn enter(workspace: &Workspace) -> Result<()> {
    // Also in the namespace that this function made.
    if statfs(TMP).context("/tmp")?.f_type == TMPFS_MAGIC {
        return Ok(());
    }
    if let Err(reason) = is_possible(workspace) {
        print_line(format_args!(
            "temporary files stay where they are: {reason}"
        ));
        return Ok(());
    }
    let program = std::env::current_exe().context("this program's own path")?;
    let mut command = namespaced();
    command.arg(program).args(std::env::args_os().skip(1));
    // Returns only where it fails.
    Err(command.exec()).context("cannot execute unshare")
}

/// Whether a tmpfs at `/tmp` is possible and of use; why not.
fn is_possible(workspace: &Workspace) -> Result<(), &'static str> {
    if std::env::temp_dir() != Path::new(TMP) {
        return Err("TMPDIR is set");
    }
    let named = ["OSTLER_BIN", "CARGO_HOME", "RUSTUP_HOME", "HOME"];
    let named = named.iter().filter_map(std::env::var_os).map(PathBuf::from);
    let directories = [workspace.root().to_owned(), workspace.target().to_owned()];
    if named.chain(directories).any(|path| path.starts_with(TMP)) {
        return Err("what the tests need lies in /tmp");
    }
    if available_memory() < MEMORY_BYTES {
        return Err("too little memory is available");
    }
    let trial = namespaced().arg("true").output();
    if !trial.is_ok_and(|output| output.status.success()) {
        return Err("no mount namespace can be made");
    }
    Ok(())
}

fn namespaced() -> Command {
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "slave", "sh", "-c", SCRIPT]);
    command.arg(OsStr::new(&SIZE_BYTES.to_string()));
    command
}

/// `MemAvailable` of proc(5)'s `meminfo`, in bytes; 0 where it is not known.
fn available_memory() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kilobytes.unwrap_or_default() * 1024
}
