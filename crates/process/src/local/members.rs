//! Who belongs to an execution. What its directory says is read again only when it has changed:
//! services are looked at all the time.

use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use ostler_model::ExecutionId;
use ostler_sandbox::cgroup::{self, ShimName, SlotOwner};
use rustix::fs::{AtFlags, Stat as FileStat, statat};
use rustix::io::Errno;

use super::recovery;
use super::sockets::{Inside, Memory};
use super::supply::Supply;
use crate::shim::{marker, record};
use crate::spec_file::{BootStamp, SPEC_FILE};
use crate::sys::proc::{self, Stat};
use crate::sys::role;

/// Executions of which something is remembered.
const KNOWN_MAX: usize = 1_024;

/// What is known of an execution that was looked at.
#[derive(Debug)]
pub(super) struct Known {
    stamp: Stamp,
    attempt: u32,
    pub(super) boot: BootStamp,
    /// Its shim's cgroup, where it has one.
    slot: Option<PathBuf>,
    /// The newest exit record that was read, with its attempt.
    exit: Mutex<Option<(Stamp, u32)>>,
    pub(super) inside: Inside,
    /// What its members were found to listen on.
    pub(super) sockets: Memory,
}

/// Tells a file from what it was before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    size: i64,
    changed: (i64, u64),
}

/// One living process.
#[derive(Debug, Clone)]
pub(super) struct Living {
    pub(super) pid: i32,
    pub(super) stat: Stat,
    pub(super) name: String,
}

impl Living {
    fn read(pid: i32) -> Option<Self> {
        let (stat, name) = proc::named_stat(pid)?;
        stat.is_alive().then_some(Self { pid, stat, name })
    }
}

impl Stamp {
    fn of(supply: &Supply, id: ExecutionId, file: &str) -> Result<Self, Errno> {
        let path = format!("{id}/{file}");
        let executions = supply.executions().as_fd();
        let FileStat {
            st_ino,
            st_size,
            st_ctime,
            st_ctime_nsec,
            ..
        } = statat(executions, path, AtFlags::SYMLINK_NOFOLLOW)?;
        Ok(Self {
            inode: st_ino,
            size: st_size,
            changed: (st_ctime, st_ctime_nsec),
        })
    }
}

/// What its directory says; none where nothing is known of it here.
pub(super) fn known(supply: &Supply, id: ExecutionId) -> Option<Arc<Known>> {
    let stamp = Stamp::of(supply, id, SPEC_FILE).ok()?;
    if let Some(known) = supply.known().get(&id)
        && known.stamp == stamp
    {
        return Some(Arc::clone(known));
    }
    let (attempt, boot) = recovery::shim_of(supply, id)?;
    let slot = i32::try_from(boot.shim_pid).ok().and_then(|pid| {
        let owner = SlotOwner::of(supply.executions().as_fd()).ok()?;
        let shim = ShimName {
            pid,
            start: boot.shim_start,
            serial: 0,
        };
        cgroup::slot_directory(owner, shim)
    });
    let known = Arc::new(Known {
        stamp,
        attempt,
        slot: slot.filter(|_| !boot.in_process),
        boot,
        exit: Mutex::default(),
        inside: Inside::default(),
        sockets: Memory::default(),
    });
    let mut all = supply.known();
    if all.len() >= KNOWN_MAX {
        all.clear();
    }
    all.insert(id, Arc::clone(&known));
    Some(known)
}

/// The living, the leader first.
///
/// Under a shim that is every descendant but helpers of ours, as long as its exit record is not
/// written: a shim takes the next plan only after that. Environments need not be read, and may
/// say anything: servers write over them.
pub(super) fn of(supply: &Supply, known: &Known, id: ExecutionId) -> Vec<Living> {
    let mut found = if shim_lives(&known.boot) {
        let found = under_shim(known);
        // Asked last: whoever was found before belongs to it only if it was not over.
        if is_over(supply, known, id) {
            Vec::new()
        } else {
            found
        }
    } else {
        let marked = proc::members(&marker(id), None);
        marked.into_iter().filter_map(Living::read).collect()
    };
    // The leader leads its process group and was born first.
    found.sort_by_key(|it| (it.stat.group != it.pid, it.stat.start, it.pid));
    found
}

/// The execution that a living shim carries out, as far as it was looked at.
pub(super) fn carried_by(supply: &Supply, shim: i32) -> Option<ExecutionId> {
    let of_shim = |known: &Known| known.boot.shim_pid == shim.unsigned_abs();
    let known: Vec<_> = supply
        .known()
        .iter()
        .filter(|(_, known)| of_shim(known))
        .map(|(id, known)| (*id, Arc::clone(known)))
        .collect();
    let carried = |(id, known): &(ExecutionId, Arc<Known>)| {
        shim_lives(&known.boot) && !is_over(supply, known, *id)
    };
    known.into_iter().find(carried).map(|(id, _)| id)
}

fn shim_lives(boot: &BootStamp) -> bool {
    let pid = i32::try_from(boot.shim_pid).unwrap_or(0);
    !boot.in_process && boot.id == proc::boot_id() && proc::is_same(pid, boot.shim_start)
}

/// Whether this attempt, or a later one, has left its record.
fn is_over(supply: &Supply, known: &Known, id: ExecutionId) -> bool {
    let Ok(stamp) = Stamp::of(supply, id, record::EXIT_FILE) else {
        return false;
    };
    let mut read = known.exit.lock().unwrap_or_else(PoisonError::into_inner);
    let attempt = match *read {
        Some((before, attempt)) if before == stamp => attempt,
        Some(_) | None => {
            let Some(attempt) = recovery::ended_attempt(supply, id) else {
                return false;
            };
            *read = Some((stamp, attempt));
            attempt
        }
    };
    attempt >= known.attempt
}

/// By the shim's cgroup, which lists everybody at once, and its children: who left the cgroup
/// and was orphaned is among those.
fn under_shim(known: &Known) -> Vec<Living> {
    let shim = i32::try_from(known.boot.shim_pid).unwrap_or(0);
    let mut pids = known
        .slot
        .as_ref()
        .map(|slot| cgroup::members_in(slot))
        .unwrap_or_default();
    let mut found: Vec<Living> = Vec::with_capacity(pids.len());
    let mut helpers = Vec::new();
    for child in proc::children(shim) {
        let Some(living) = Living::read(child) else {
            continue;
        };
        if is_helper(&living) {
            helpers.push(child);
            if living.name.as_bytes() == role::GATE.to_bytes() {
                helpers.extend(proc::descendants(child));
            }
        } else if !pids.contains(&child) {
            pids.push(child);
            pids.extend(proc::descendants(child));
        }
        if living.name.as_bytes() == role::WARDEN.to_bytes() && known.slot.is_none() {
            pids.extend(proc::descendants(child));
        }
    }
    pids.sort_unstable();
    pids.dedup();
    pids.retain(|pid| *pid != shim && !helpers.contains(pid));
    found.extend(pids.into_iter().filter_map(Living::read));
    found
}

/// Children of a shim that are ours: the warden and the gate of a cell, and who has not become
/// the command yet. Anybody can call themselves so, and is then not seen.
fn is_helper(child: &Living) -> bool {
    let roles = [role::WARDEN, role::GATE, role::SHIM];
    roles
        .iter()
        .any(|role| child.name.as_bytes() == role.to_bytes())
}
