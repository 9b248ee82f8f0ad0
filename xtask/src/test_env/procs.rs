//! Processes by pid, held by a pidfd so that a reused pid is never signalled.

use std::fmt;
use std::fs;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

#[derive(Debug)]
pub(crate) struct ProcessHandle {
    pub(crate) pid: u32,
    handle: OwnedFd,
}

impl fmt::Display for ProcessHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.pid, self.comm())
    }
}

impl ProcessHandle {
    /// Opens a running process.
    pub(crate) fn open(pid: u32) -> Result<Self> {
        let number = Pid::from_raw(i32::try_from(pid)?).context("pid 0")?;
        let handle = pidfd_open(number, PidfdFlags::empty())
            .with_context(|| format!("there is no process {pid}"))?;
        Ok(Self { pid, handle })
    }

    /// Its comm name; empty once it has exited.
    pub(crate) fn comm(&self) -> String {
        let comm = fs::read_to_string(format!("/proc/{}/comm", self.pid));
        comm.unwrap_or_default().trim_end().to_owned()
    }

    /// The pid of its parent.
    pub(crate) fn parent(&self) -> Option<u32> {
        self.status("PPid:")?.parse().ok()
    }

    /// One field of its status (proc(5)), without the unit.
    pub(crate) fn status(&self, field: &str) -> Option<String> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid)).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix(field))?;
        line.split_whitespace().next().map(str::to_owned)
    }

    /// The CPU seconds of its threads; 0 once it has exited.
    pub(crate) fn cpu_seconds(&self) -> f64 {
        let Ok(tasks) = fs::read_dir(format!("/proc/{}/task", self.pid)) else {
            return 0.0;
        };
        let stats = tasks
            .flatten()
            .map(|task| fs::read_to_string(task.path().join("schedstat")));
        let on_cpu = stats
            .flatten()
            .filter_map(|stat| stat.split(' ').next()?.parse::<f64>().ok());
        on_cpu.sum::<f64>() / 1e9
    }

    /// Whether its environment, its arguments or one of its open files names this directory.
    pub(crate) fn belongs_to(&self, dir: &Path) -> bool {
        belongs(self.pid, dir)
    }

    /// Kills it. A process that has exited is not an error.
    pub(crate) fn kill(&self) {
        let _gone = pidfd_send_signal(&self.handle, Signal::KILL);
    }

    /// Waits until it has exited; false if it has not by the deadline.
    pub(crate) fn wait_gone(&self, deadline: Instant) -> bool {
        let left = deadline.saturating_duration_since(Instant::now());
        let left = Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: left.subsec_nanos().into(),
        };
        let mut handles = [PollFd::new(&self.handle, PollFlags::IN)];
        poll(&mut handles, Some(&left)).is_ok_and(|ready| ready > 0)
    }
}

/// The pids of all running processes.
pub(crate) fn all_pids() -> Vec<u32> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}

/// All processes of the binary itself (daemon, zygote, shims, stdio proxies) of an environment.
pub(super) fn of_env(dir: &Path) -> Vec<ProcessHandle> {
    let handles = all_pids()
        .into_iter()
        .filter_map(|pid| ProcessHandle::open(pid).ok());
    handles
        .filter(|proc| proc.comm().starts_with("ostler") && proc.belongs_to(dir))
        .filter(|proc| proc.status("State:").is_some_and(|state| state != "Z"))
        .collect()
}

/// Running processes with this execution's id in their environment.
pub(crate) fn members(execution: &str) -> Vec<ProcessHandle> {
    let mark = format!("OSTLER_EXECUTION={execution}");
    let marked = |pid: &u32| {
        fs::read(format!("/proc/{pid}/environ")).is_ok_and(|environ| {
            environ
                .split(|byte| *byte == 0)
                .any(|entry| entry == mark.as_bytes())
        })
    };
    all_pids()
        .into_iter()
        .filter(marked)
        .filter_map(|pid| ProcessHandle::open(pid).ok())
        .collect()
}

/// Running processes of any execution whose environment names this directory.
pub(super) fn executed_below(dir: &Path) -> Vec<ProcessHandle> {
    let dir = dir.as_os_str().as_encoded_bytes();
    let executed = |pid: &u32| {
        fs::read(format!("/proc/{pid}/environ")).is_ok_and(|environ| {
            let marked = environ
                .split(|byte| *byte == 0)
                .any(|e| e.starts_with(b"OSTLER_EXECUTION="));
            marked && environ.windows(dir.len()).any(|window| window == dir)
        })
    };
    all_pids()
        .into_iter()
        .filter(executed)
        .filter_map(|pid| ProcessHandle::open(pid).ok())
        .collect()
}

fn belongs(pid: u32, dir: &Path) -> bool {
    let dir = dir.as_os_str().as_encoded_bytes();
    let named = |file: &str| {
        fs::read(format!("/proc/{pid}/{file}"))
            .is_ok_and(|bytes| bytes.windows(dir.len()).any(|window| window == dir))
    };
    named("environ") || named("cmdline") || has_open_below(pid, dir)
}

fn has_open_below(pid: u32, dir: &[u8]) -> bool {
    let Ok(entries) = fs::read_dir(format!("/proc/{pid}/fd")) else {
        return false;
    };
    let targets = entries
        .flatten()
        .filter_map(|entry| fs::read_link(entry.path()).ok());
    targets
        .into_iter()
        .any(|target| target.as_os_str().as_encoded_bytes().starts_with(dir))
}
