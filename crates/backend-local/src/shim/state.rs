//! Who a shim is, and what it keeps from plan to plan.

use std::os::fd::OwnedFd;

use ostler_backend::prepared_dir::DirPreparation;
use ostler_backend::spec_file::ShimIdentity;
use ostler_journal::Durability;
use ostler_sandbox::cgroup::{CgroupSlot, ShimName};

use crate::sys::memory::Pages;
use crate::sys::proc;

/// How a shim runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ShimMode {
    /// A separate process, subreaper of the processes that it starts.
    Process,
    /// A thread of the engine's process, where children of others must not be reaped.
    Thread,
}

/// Who this shim is, and how it runs.
#[derive(Debug, Clone)]
pub(crate) struct ShimInfo {
    pub(crate) mode: ShimMode,
    pub(crate) boot_id: String,
    pub(crate) pid: u32,
    pub(crate) start: u64,
    /// What its records survive.
    pub(crate) durability: Durability,
}

impl ShimInfo {
    /// The identity of the calling process.
    pub(crate) fn own(mode: ShimMode, boot_id: String, durability: Durability) -> Self {
        let pid = std::process::id();
        Self {
            mode,
            boot_id,
            pid,
            start: proc::start_time(i32::try_from(pid).unwrap_or(0)),
            durability,
        }
    }

    /// The identity as in `spec.json`.
    pub(super) fn to_identity(&self) -> ShimIdentity {
        ShimIdentity {
            id: self.boot_id.clone(),
            shim_pid: self.pid,
            shim_start: self.start,
            in_process: self.mode == ShimMode::Thread,
        }
    }

    /// The name of a slot; `serial` distinguishes the threads of one process.
    pub(crate) fn name(&self, serial: u32) -> ShimName {
        ShimName {
            pid: i32::try_from(self.pid).unwrap_or(0),
            start: self.start,
            serial,
        }
    }
}

/// The state a shim keeps from plan to plan.
#[derive(Debug)]
pub(crate) struct Shim {
    pub(crate) executions: OwnedFd,
    pub(crate) identity: ShimInfo,
    /// The same for `spec.json`.
    pub(crate) boot: ShimIdentity,
    pub(crate) slot: Option<CgroupSlot>,
    pub(crate) buffer: Pages,
    pub(crate) stack: Pages,
    pub(crate) child_signal: Option<OwnedFd>,
    /// The directory of the next execution.
    pub(crate) preparation: DirPreparation,
    /// Whether more of the buffer was touched than a small command does.
    pub(crate) buffer_touched: bool,
}
