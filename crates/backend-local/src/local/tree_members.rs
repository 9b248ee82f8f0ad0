//! Finds the processes of an execution. Its directory is read again only when it has changed, since
//! services are inspected all the time.

use std::collections::HashMap;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use ostler_backend::container_file::ContainerFile;
use ostler_backend::execution_dir;
use ostler_backend::spec_file::{SPEC_FILE, ShimIdentity};
use ostler_backend::stored_files::SpecHeader;
use ostler_model::{BackendName, ExecutionId};
use ostler_sandbox::cgroup::{self, ShimName, SlotOwner};
use ostler_sys::process_stat::ProcessStat;
use parking_lot::Mutex;
use rustix::fs::{AtFlags, Stat, statat};
use rustix::io::Errno;

use super::execution_files;
use super::sockets::{NetnsDiagCache, SocketScanCache};
use crate::shim::{EXECUTION_VARIABLE, marker};
use crate::sys::proc::{self, ProcessWalk};
use crate::sys::process_name;

/// How many executions are cached: more than live at once, since all of them are sampled in turn.
const TREES_MAX: usize = 8_192;
const MICROS_PER_SECOND: u64 = 1_000_000;

/// Cached information on an execution.
#[derive(Debug)]
pub(super) struct TreeInfo {
    stamp: StatStamp,
    attempt: u32,
    pub(super) shim: ShimIdentity,
    /// Its shim's cgroup, where it has one and the processes are in it.
    slot: Option<PathBuf>,
    /// Whether its processes are in a container.
    in_container: bool,
    /// Which one, once it is known.
    container: OnceLock<ContainerFile>,
    /// The newest exit record that was read, with its attempt.
    exit_record: Mutex<Option<(StatStamp, u32)>>,
    pub(super) netns_diags: NetnsDiagCache,
    /// The listening sockets its members were found to have.
    pub(super) socket_cache: SocketScanCache,
}

/// The process trees of a backend's executions, by what is known of those that were inspected.
#[derive(Debug)]
pub(super) struct ProcessTrees {
    /// The directory of executions.
    executions: Arc<OwnedFd>,
    known: Mutex<HashMap<ExecutionId, Arc<TreeInfo>>>,
}

/// Distinguishes one state of a file from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct StatStamp {
    inode: u64,
    size: i64,
    changed: (i64, u64),
}

/// One live process.
#[derive(Debug, Clone)]
pub(super) struct LiveProcess {
    pub(super) pid: i32,
    pub(super) stat: ProcessStat,
    pub(super) name: String,
}

impl TreeInfo {
    /// The OS pid of its shim.
    pub(super) fn shim_pid(&self) -> i32 {
        i32::try_from(self.shim.shim_pid).unwrap_or(0)
    }

    /// Processor time in microseconds: what its cgroup counted; without one, what these processes
    /// and those they waited for used, and those that the shim waited for, which adopts orphans.
    pub(super) fn cpu_us(&self, processes: &[(i32, ProcessStat)]) -> u64 {
        if let Some(counted) = self
            .slot
            .as_ref()
            .and_then(|slot| cgroup::cpu_usage_us(slot))
        {
            return counted;
        }
        let container = self.container.get();
        let reaper = container.map_or_else(|| self.shim_pid(), |it| it.runner_pid);
        let has_own_reaper = self.in_container || !self.shim.in_process;
        let reaped = proc::stat(reaper).filter(|_| has_own_reaper);
        let ended = reaped.map_or(0, |stat| stat.children_ticks);
        let used = processes
            .iter()
            .map(|(_, stat)| stat.cpu_ticks + stat.children_ticks);
        let ticks = used.fold(ended, u64::saturating_add);
        ticks.saturating_mul(MICROS_PER_SECOND) / rustix::param::clock_ticks_per_second()
    }
}

impl LiveProcess {
    fn read(pid: i32) -> Option<Self> {
        let (stat, name) = proc::named_stat(pid)?;
        stat.is_alive().then_some(Self { pid, stat, name })
    }
}

impl StatStamp {
    fn from_file(executions: BorrowedFd<'_>, id: ExecutionId, file: &str) -> Result<Self, Errno> {
        let path = format!("{id}/{file}");
        let Stat {
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

impl ProcessTrees {
    pub(super) fn new(executions: Arc<OwnedFd>) -> Self {
        Self {
            executions,
            known: Mutex::default(),
        }
    }

    /// Forgets what is known of an execution.
    pub(super) fn forget(&self, id: ExecutionId) {
        self.known.lock().remove(&id);
    }

    /// The information in its directory; none where the execution is not known here.
    pub(super) fn info(&self, id: ExecutionId) -> Option<Arc<TreeInfo>> {
        let stamp = StatStamp::from_file(self.executions.as_fd(), id, SPEC_FILE).ok()?;
        if let Some(tree) = self.known.lock().get(&id)
            && tree.stamp == stamp
        {
            return Some(Arc::clone(tree));
        }
        let SpecHeader {
            attempt,
            boot,
            spec,
            ..
        } = execution_files::read_shim(self.executions.as_fd(), id)?;
        let in_container = spec.place == Some(BackendName::container());
        let slot = i32::try_from(boot.shim_pid).ok().and_then(|pid| {
            let owner = SlotOwner::of(self.executions.as_fd()).ok()?;
            let shim = ShimName {
                pid,
                start: boot.shim_start,
                serial: 0,
            };
            cgroup::slot_directory(owner, shim)
        });
        let tree = Arc::new(TreeInfo {
            stamp,
            attempt,
            slot: slot.filter(|_| !boot.in_process && !in_container),
            in_container,
            container: OnceLock::new(),
            shim: boot,
            exit_record: Mutex::default(),
            netns_diags: NetnsDiagCache::default(),
            socket_cache: SocketScanCache::default(),
        });
        let mut trees = self.known.lock();
        if trees.len() >= TREES_MAX {
            trees.clear();
        }
        trees.insert(id, Arc::clone(&tree));
        Some(tree)
    }

    /// Live processes, the leader first.
    ///
    /// Under a shim these are all descendants except helpers, as long as its exit record is not
    /// written: a shim takes the next plan only after that. Environments are not read, since servers
    /// may overwrite them.
    pub(super) fn live_members(&self, tree: &TreeInfo, id: ExecutionId) -> Vec<LiveProcess> {
        let mut members = if tree.in_container || is_shim_alive(&tree.shim) {
            let pids = self.descendants(tree, id, &ProcessWalk::default());
            let members = pids.into_iter().filter_map(LiveProcess::read).collect();
            // Checked last: the processes found before belong to it only if it had not ended.
            if self.has_exited(tree, id) {
                Vec::new()
            } else {
                members
            }
        } else {
            let pids = proc::members(&marker(id), None);
            pids.into_iter().filter_map(LiveProcess::read).collect()
        };
        // The leader leads its process group and was spawned first.
        members.sort_by_key(|it| (it.stat.group != it.pid, it.stat.start, it.pid));
        members
    }

    /// All processes of a tree, zombies included as far as they are found, the leader first; empty
    /// where it has ended. As [`live_members`](Self::live_members), with a walk that several trees
    /// share.
    pub(super) fn processes(
        &self,
        tree: &TreeInfo,
        id: ExecutionId,
        walk: &ProcessWalk,
    ) -> Vec<(i32, ProcessStat)> {
        let is_alive = tree.in_container || is_shim_alive(&tree.shim);
        let pids = if is_alive {
            self.descendants(tree, id, walk)
        } else {
            walk.with_variable(EXECUTION_VARIABLE.as_bytes(), id.to_string().as_bytes())
        };
        let read = |pid| Some((pid, proc::stat(pid)?));
        let mut found: Vec<_> = pids.into_iter().filter_map(read).collect();
        if is_alive && self.has_exited(tree, id) {
            return Vec::new();
        }
        found.sort_by_key(|(pid, stat)| (stat.group != *pid, stat.start, *pid));
        found
    }

    /// The processes of a tree whose shim lives: descendants of the shim, or of the runner in a
    /// container.
    fn descendants(&self, tree: &TreeInfo, id: ExecutionId, walk: &ProcessWalk) -> Vec<i32> {
        if !tree.in_container {
            return shim_descendants(tree, walk);
        }
        let Some(container) = self.container(tree, id) else {
            return Vec::new();
        };
        let (runner, start) = (container.runner_pid, container.runner_start);
        if runner > 0 && proc::is_same(runner, start) {
            walk.descendants(runner)
        } else {
            Vec::new()
        }
    }

    /// The container of a tree; none where it is in none, or that is not known yet.
    pub(super) fn container<'a>(
        &self,
        tree: &'a TreeInfo,
        id: ExecutionId,
    ) -> Option<&'a ContainerFile> {
        if !tree.in_container {
            return None;
        }
        if let Some(known) = tree.container.get() {
            return Some(known);
        }
        let read = execution_files::read_container(self.executions.as_fd(), id, tree.attempt)?;
        Some(tree.container.get_or_init(|| read))
    }

    /// The execution that a running shim runs, as far as it was inspected.
    pub(super) fn execution_of_shim(&self, shim: i32) -> Option<ExecutionId> {
        let is_of_shim = |known: &TreeInfo| known.shim.shim_pid == shim.unsigned_abs();
        let candidates: Vec<_> = self
            .known
            .lock()
            .iter()
            .filter(|(_, known)| is_of_shim(known))
            .map(|(id, known)| (*id, Arc::clone(known)))
            .collect();
        let is_running = |(id, known): &(ExecutionId, Arc<TreeInfo>)| {
            is_shim_alive(&known.shim) && !self.has_exited(known, *id)
        };
        candidates.into_iter().find(is_running).map(|(id, _)| id)
    }

    /// Whether this attempt, or a later one, has left its record.
    fn has_exited(&self, tree: &TreeInfo, id: ExecutionId) -> bool {
        let Ok(stamp) = StatStamp::from_file(self.executions.as_fd(), id, execution_dir::EXIT_FILE)
        else {
            return false;
        };
        let mut cached = tree.exit_record.lock();
        let attempt = match *cached {
            Some((cached_stamp, attempt)) if cached_stamp == stamp => attempt,
            Some(_) | None => {
                let Some(attempt) = execution_files::recorded_attempt(self.executions.as_fd(), id)
                else {
                    return false;
                };
                *cached = Some((stamp, attempt));
                attempt
            }
        };
        attempt >= tree.attempt
    }
}

fn is_shim_alive(shim: &ShimIdentity) -> bool {
    let pid = i32::try_from(shim.shim_pid).unwrap_or(0);
    !shim.in_process && shim.id == proc::boot_id() && proc::is_same(pid, shim.shim_start)
}

/// From the shim's cgroup, which lists all processes at once, and from its children, which include
/// orphans that left the cgroup.
fn shim_descendants(tree: &TreeInfo, walk: &ProcessWalk) -> Vec<i32> {
    let shim = tree.shim_pid();
    let mut pids = tree
        .slot
        .as_ref()
        .map(|slot| cgroup::pids_in(slot))
        .unwrap_or_default();
    let mut helpers = Vec::new();
    for child in walk.children(shim) {
        let Some(process) = LiveProcess::read(child) else {
            continue;
        };
        if is_helper(&process) {
            helpers.push(child);
            if process.name.as_bytes() == process_name::EGRESS.to_bytes() {
                helpers.extend(walk.descendants(child));
            }
        } else if !pids.contains(&child) {
            pids.push(child);
            pids.extend(walk.descendants(child));
        }
        if process.name.as_bytes() == process_name::INIT.to_bytes() && tree.slot.is_none() {
            pids.extend(walk.descendants(child));
        }
    }
    pids.sort_unstable();
    pids.dedup();
    pids.retain(|pid| *pid != shim && !helpers.contains(pid));
    pids
}

/// Whether a child of a shim is a helper: the init and the egress proxy of a jail, and a child that
/// has not executed the command yet. Any process can take such a name, and is then not listed.
fn is_helper(child: &LiveProcess) -> bool {
    let roles = [process_name::INIT, process_name::EGRESS, process_name::SHIM];
    roles
        .iter()
        .any(|role| child.name.as_bytes() == role.to_bytes())
}
