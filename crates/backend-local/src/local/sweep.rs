//! Kills what a killed shim left when no zygote was there to do it: members are found by the shim's
//! cgroups, by the marker in their environment and by their process groups.

use std::collections::BTreeSet;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use ostler_backend::spec_file::ShimIdentity;
use ostler_model::ExecutionId;
use ostler_sandbox::cgroup::{self, SlotOwner};
use ostler_sys::pidfd;
use rustix::process::{Pid, PidfdFlags, pidfd_open, pidfd_send_signal};

use crate::shim::marker;
use crate::sys::proc;

/// How long all rounds together may take, in milliseconds.
const END_MS: u64 = 5_000;
/// How long one round waits for the processes it killed, in milliseconds.
const ROUND_MS: u64 = 500;

/// Kills every member, and returns how many there were. Blocks until they are gone.
pub(super) fn kill_members(
    executions: BorrowedFd<'_>,
    id: ExecutionId,
    shim: Option<&ShimIdentity>,
) -> u32 {
    let owner = SlotOwner::of(executions).unwrap_or_default();
    let deadline = Instant::now() + Duration::from_millis(END_MS);
    let marker = marker(id);
    let mut killed: BTreeSet<i32> = BTreeSet::new();
    loop {
        let members = find_members(&marker, shim.map(|shim| (owner, shim)));
        // Processes that are already dying were found alive: killing their slot came first.
        killed.extend(&members);
        let dying: Vec<OwnedFd> = members.into_iter().filter_map(kill).collect();
        if dying.is_empty() || Instant::now() >= deadline {
            return u32::try_from(killed.len()).unwrap_or(u32::MAX);
        }
        wait_exited(&dying);
    }
}

/// Processes that carry the marker, are in the process group of one that does, or are in the shim's
/// slot. The slot may still hold the dying shim, and a child between clone and exec: both are in
/// the group of all shims, so groups are only taken from processes that carry the marker.
fn find_members(marker: &[u8], shim: Option<(SlotOwner, &ShimIdentity)>) -> BTreeSet<i32> {
    let mut found: BTreeSet<i32> = proc::members(marker, None).into_iter().collect();
    let own_group = proc::stat(own_pid()).map_or(0, |stat| stat.group);
    let groups: BTreeSet<i32> = found
        .iter()
        .filter_map(|pid| Some(proc::stat(*pid)?.group))
        .filter(|group| *group > 1 && *group != own_group)
        .collect();
    if !groups.is_empty() {
        let in_group = |pid: &i32| {
            let stat = proc::stat(*pid);
            stat.is_some_and(|stat| stat.is_alive() && groups.contains(&stat.group))
        };
        // A command may have joined the group of all shims.
        let command = |pid: &i32| !proc::has_role(*pid);
        found.extend(proc::all().into_iter().filter(in_group).filter(command));
    }
    if let Some((owner, shim)) = shim.filter(|(_, shim)| shim.id == proc::boot_id()) {
        let slot = cgroup::kill_slots_of(owner, shim.shim_pid, shim.shim_start);
        let is_leftover = |pid: &i32| pid.unsigned_abs() != shim.shim_pid && is_alive(*pid);
        found.extend(slot.into_iter().filter(is_leftover));
    }
    found.remove(&own_pid());
    found
}

fn own_pid() -> i32 {
    i32::try_from(std::process::id()).unwrap_or(0)
}

fn is_alive(pid: i32) -> bool {
    proc::stat(pid).is_some_and(|stat| stat.is_alive())
}

/// Kills one process and returns its pidfd to wait for, where it existed.
fn kill(pid: i32) -> Option<OwnedFd> {
    let pidfd = pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok()?;
    pidfd_send_signal(&pidfd, rustix::process::Signal::KILL).ok()?;
    Some(pidfd)
}

fn wait_exited(dying: &[OwnedFd]) {
    for pidfd in dying {
        let _ended = pidfd::has_ended_within(pidfd.as_fd(), Duration::from_millis(ROUND_MS));
    }
}
