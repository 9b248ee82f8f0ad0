//! How one kind of limit is set and counted: by a controller of the unified hierarchy, by one
//! of version 1, or not at all (then only setrlimit(2) is left, see [`crate::rlimit`]).
//!
//! | | version 2 | version 1 (hybrid) |
//! |---|---|---|
//! | processes | `pids.max`, `pids.events` | the same files |
//! | memory with swap | `memory.max`, `memory.swap.max`, `memory.events` | `memory.limit_in_bytes`, `memory.memsw.limit_in_bytes`, `memory.oom_control` |
//! | processor | `cpu.max` | `cpu.cfs_period_us`, `cpu.cfs_quota_us` |

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use super::files;

/// The period of processor limits, in microseconds.
const CPU_PERIOD_US: u64 = 100_000;

/// How one controller's limit is enforced in a slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum LimitMechanism {
    /// The slot's directory in the unified hierarchy, where its members are spawned.
    Unified(PathBuf),
    /// A directory of version 1, joined before exec.
    Legacy(PathBuf),
    /// No controller this user may write.
    Absent,
}

impl LimitMechanism {
    /// Sets the limit on processes; `None` lifts it.
    pub(super) fn set_pids(&self, limit: Option<u64>) -> io::Result<()> {
        match self {
            Self::Unified(directory) | Self::Legacy(directory) => {
                files::write(&directory.join("pids.max"), &or_max(limit))
            }
            Self::Absent => Ok(()),
        }
    }

    /// Sets the limit on memory and swap together; `None` lifts it.
    pub(super) fn set_memory(&self, limit: Option<u64>) -> io::Result<()> {
        match self {
            Self::Unified(directory) => {
                files::write(&directory.join("memory.max"), &or_max(limit))?;
                let swap = limit.map(|_| 0);
                let _no_swap = files::write(&directory.join("memory.swap.max"), &or_max(swap));
                let together = if limit.is_some() { "1" } else { "0" };
                let _alone = files::write(&directory.join("memory.oom.group"), together);
                Ok(())
            }
            Self::Legacy(directory) => match limit {
                Some(limit) => set_legacy_memory(directory, limit),
                // A command without a limit does not join.
                None => Ok(()),
            },
            Self::Absent => Ok(()),
        }
    }

    /// Sets the limit on processor time, in thousandths of one processor; `None` lifts it.
    pub(super) fn set_cpu(&self, millis: Option<u32>) -> io::Result<()> {
        let quota = millis.map(|millis| u64::from(millis) * CPU_PERIOD_US / 1_000);
        match (self, quota) {
            (Self::Unified(directory), quota) => {
                let value = format!("{} {CPU_PERIOD_US}", or_max(quota));
                files::write(&directory.join("cpu.max"), &value)
            }
            (Self::Legacy(directory), Some(quota)) => {
                let period = CPU_PERIOD_US.to_string();
                files::write(&directory.join("cpu.cfs_period_us"), &period)?;
                files::write(&directory.join("cpu.cfs_quota_us"), &quota.to_string())
            }
            (Self::Legacy(_), None) | (Self::Absent, _) => Ok(()),
        }
    }

    /// The file a child writes `0` into to join, where it is not spawned inside.
    pub(super) fn open_join_file(&self) -> io::Result<Option<File>> {
        match self {
            Self::Legacy(directory) => open_procs(directory).map(Some),
            Self::Unified(_) | Self::Absent => Ok(None),
        }
    }

    /// How many processes the out-of-memory killer ended here so far.
    pub(super) fn oom_kills(&self) -> u64 {
        let file = match self {
            Self::Unified(directory) => directory.join("memory.events"),
            Self::Legacy(directory) => directory.join("memory.oom_control"),
            Self::Absent => return 0,
        };
        files::read_number(&file, "oom_kill").unwrap_or(0)
    }
}

/// Opens a `cgroup.procs` file for writing.
pub(super) fn open_procs(directory: &Path) -> io::Result<File> {
    fs::OpenOptions::new()
        .write(true)
        .open(directory.join("cgroup.procs"))
}

/// Memory and swap together may not be lower than memory: whichever way the limit moves, one order
/// of writing works. Memory still charged to an earlier command may prevent a lower limit; then the
/// directory is recreated.
fn set_legacy_memory(directory: &Path, limit: u64) -> io::Result<()> {
    match write_legacy_memory(directory, limit) {
        Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
            fs::remove_dir(directory)?;
            files::make_dir(directory)?;
            write_legacy_memory(directory, limit)
        }
        written => written,
    }
}

fn write_legacy_memory(directory: &Path, limit: u64) -> io::Result<()> {
    let memory = directory.join("memory.limit_in_bytes");
    let both = directory.join("memory.memsw.limit_in_bytes");
    let limit = limit.to_string();
    if files::write(&memory, &limit).is_err() {
        let _no_swap_accounting = files::write(&both, &limit);
        files::write(&memory, &limit)?;
    }
    let _no_swap_accounting = files::write(&both, &limit);
    Ok(())
}

fn or_max(value: Option<u64>) -> String {
    value.map_or_else(|| "max".to_owned(), |value| value.to_string())
}
