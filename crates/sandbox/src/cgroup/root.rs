//! Our own directory in each hierarchy, `ostler-<uid>`: in the unified one outside of the daemon's
//! cgroup where possible, so that stopping a service manager's unit does not end commands; in those
//! of version 1 inside of it, so that its limits apply to them too.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::files;
use super::hierarchy::{CgroupLayout, Controller, Hierarchy};
use super::owner::{self, SlotOwner};
use super::slot::CgroupSlot;

/// The leaf cgroup of zygotes and shims.
const ZYGOTE_LEAF: &str = "keepers";
const LIMIT_CONTROLLERS: [Controller; 3] = [Controller::Pids, Controller::Memory, Controller::Cpu];

/// Why no cgroup is available.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CgroupRootError {
    /// The unified hierarchy is not mounted.
    #[error("the unified cgroup hierarchy is not mounted")]
    NotMounted,
    /// No directory in it is writable for us.
    #[error("no cgroup that this user may write (delegation): {0}")]
    NotWritable(String),
    /// Processes cannot be moved into the directory we could create.
    #[error("processes may not be moved into {0}: {1}")]
    NoEntry(String, String),
}

/// Ostler's directory in each hierarchy.
#[derive(Debug, Clone, Default)]
pub struct CgroupRoot {
    /// In the unified hierarchy.
    pub(super) unified: Option<PathBuf>,
    /// Controllers of the unified hierarchy that slots can use.
    pub(super) controllers: Vec<Controller>,
    /// In hierarchies of version 1.
    pub(super) legacy: BTreeMap<Controller, PathBuf>,
    systemd: Option<PathBuf>,
    /// The owner of slots created here.
    owner: SlotOwner,
}

impl CgroupRoot {
    /// Creates or finds the directories. `enter` proves that a process can be moved into a
    /// directory; a candidate for which it fails is skipped.
    ///
    /// Always returns a root, which may be empty; the error is the reason why the unified hierarchy
    /// is not part of it.
    pub fn open(
        layout: &CgroupLayout,
        enter: impl Fn(&Path) -> io::Result<()>,
    ) -> (Self, Option<CgroupRootError>) {
        let name = format!("ostler-{}", rustix::process::geteuid().as_raw());
        let mut root = Self::default();
        let error = root.open_unified(layout, &name, enter).err();
        for (&controller, hierarchy) in &layout.legacy {
            let directory = hierarchy.own_cgroup.join(&name);
            if files::make_dir(&directory).is_ok() && is_writable(&directory) {
                root.legacy.insert(controller, directory);
            }
        }
        let systemd = layout
            .systemd
            .as_ref()
            .map(|systemd| systemd.mount.join(&name));
        root.systemd = systemd.filter(|directory| files::make_dir(directory).is_ok());
        (root, error)
    }

    fn open_unified(
        &mut self,
        layout: &CgroupLayout,
        name: &str,
        enter: impl Fn(&Path) -> io::Result<()>,
    ) -> Result<(), CgroupRootError> {
        let unified = layout.unified.as_ref().ok_or(CgroupRootError::NotMounted)?;
        let mut last = CgroupRootError::NotWritable(unified.own_cgroup.display().to_string());
        for parent in outermost_first(unified) {
            let directory = parent.join(name);
            let leaf = directory.join(ZYGOTE_LEAF);
            let made = files::make_dir(&directory).and_then(|()| files::make_dir(&leaf));
            if let Err(error) = made {
                last = CgroupRootError::NotWritable(format!("{}: {error}", parent.display()));
                continue;
            }
            if let Err(error) = enter(&leaf) {
                last = CgroupRootError::NoEntry(leaf.display().to_string(), error.to_string());
                let _kept = fs::remove_dir(&leaf).and_then(|()| fs::remove_dir(&directory));
                continue;
            }
            self.controllers = enable_controllers(&parent, &directory);
            self.unified = Some(directory);
            return Ok(());
        }
        Err(last)
    }

    /// The same, for slots of this owner only.
    #[must_use]
    pub const fn owned_by(mut self, owner: SlotOwner) -> Self {
        self.owner = owner;
        self
    }

    pub(super) fn slot_name(&self, shim: ShimName) -> String {
        slot_name(self.owner, shim)
    }

    /// Moves this process out of its parent's systemd unit, where possible.
    pub fn leave_systemd_unit(&self) {
        if let Some(systemd) = &self.systemd {
            let _stays = files::write(&systemd.join("cgroup.procs"), "0");
        }
    }

    /// Whether slots can kill everything in them at once.
    #[must_use]
    pub const fn has_unified(&self) -> bool {
        self.unified.is_some()
    }

    /// Whether slots can be frozen.
    #[must_use]
    pub fn has_freezer(&self) -> bool {
        self.has_unified() || self.legacy.contains_key(&Controller::Freezer)
    }

    /// Whether a limit of this kind can be set, and by which version of cgroups.
    #[must_use]
    pub fn limit_version(&self, controller: Controller) -> Option<CgroupVersion> {
        if self.controllers.contains(&controller) {
            Some(CgroupVersion::Two)
        } else {
            self.legacy
                .contains_key(&controller)
                .then_some(CgroupVersion::One)
        }
    }

    /// A slot for the shim with this pid and start time; `serial` distinguishes shims of one
    /// process. Created at first use.
    #[must_use]
    pub fn slot(&self, shim: ShimName) -> CgroupSlot {
        CgroupSlot::new(self.clone(), shim)
    }

    /// Kills everything in the slot of a shim that has ended; returns how many there were.
    #[must_use]
    pub fn kill_slot(&self, shim: ShimName) -> u32 {
        let mut slot = CgroupSlot::existing(self.clone(), shim);
        let members = slot.members();
        slot.kill();
        u32::try_from(members.len()).unwrap_or(u32::MAX)
    }

    /// Removes the directories of a shim that has ended, as far as they are empty.
    pub fn remove_slot(&self, shim: ShimName) {
        for directory in self.directories() {
            let _busy = fs::remove_dir(directory.join(self.slot_name(shim)));
        }
    }

    /// Removes empty slots of this owner whose shims have ended: those that no running process has
    /// locked in any hierarchy.
    pub fn remove_stale(&self) {
        let prefix = format!("{}-", self.owner);
        for directory in self.directories() {
            let Ok(entries) = fs::read_dir(directory) else {
                continue;
            };
            for entry in entries.flatten() {
                let name = entry.file_name();
                let own = name.to_str().is_some_and(|name| name.starts_with(&prefix));
                if own && !self.is_locked(Path::new(&name)) {
                    let _busy = fs::remove_dir(entry.path());
                }
            }
        }
    }

    fn is_locked(&self, slot: &Path) -> bool {
        self.directories()
            .any(|directory| owner::is_locked(&directory.join(slot)))
    }

    pub(super) fn directories(&self) -> impl Iterator<Item = &PathBuf> {
        self.unified.iter().chain(self.legacy.values())
    }
}

/// A version of cgroups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CgroupVersion {
    /// Version 1: one hierarchy per controller.
    One,
    /// Version 2: the unified hierarchy.
    Two,
}

/// Names a slot: pid and start time of the shim's process, and which shim of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShimName {
    /// The OS pid.
    pub pid: i32,
    /// The start time in clock ticks since boot.
    pub start: u64,
    /// 0 where the process is one shim; else the number of the thread.
    pub serial: u32,
}

impl std::fmt::Display for ShimName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}-{}-{}", self.pid, self.start, self.serial)
    }
}

fn slot_name(owner: SlotOwner, shim: ShimName) -> String {
    format!("{owner}-{shim}")
}

/// Kills everything in the slots of a process that has ended, wherever between the root and our own
/// cgroup they were created, and returns the processes found there: without `cgroup.kill`, the
/// caller must kill them.
#[must_use]
pub fn kill_slots_of(owner: SlotOwner, pid: u32, start: u64) -> Vec<i32> {
    let layout = CgroupLayout::read();
    let name = format!("ostler-{}", rustix::process::geteuid().as_raw());
    let prefix = format!("{owner}-{pid}-{start}-");
    let hierarchies = layout.unified.iter().chain(layout.legacy.values());
    let mut members = Vec::new();
    for parent in hierarchies.flat_map(outermost_first) {
        let Ok(entries) = fs::read_dir(parent.join(&name)) else {
            continue;
        };
        for entry in entries.flatten() {
            if entry
                .file_name()
                .to_str()
                .is_some_and(|slot| slot.starts_with(&prefix))
            {
                members.extend(files::read_pids(&entry.path()));
                let _older_kernel = files::write(&entry.path().join("cgroup.kill"), "1");
                let _busy = fs::remove_dir(entry.path());
            }
        }
    }
    members
}

/// The directory of a running shim's slot in the unified hierarchy, wherever between the root and
/// our own cgroup it was created; none where it has no slot there.
#[must_use]
pub fn slot_directory(owner: SlotOwner, shim: ShimName) -> Option<PathBuf> {
    let layout = CgroupLayout::read();
    let name = format!("ostler-{}", rustix::process::geteuid().as_raw());
    let slot = slot_name(owner, shim);
    let above = outermost_first(layout.unified.as_ref()?).into_iter();
    above
        .map(|parent| parent.join(&name).join(&slot))
        .find(|directory| directory.is_dir())
}

/// The processes in a cgroup, without those of its child cgroups.
#[must_use]
pub fn pids_in(directory: &Path) -> Vec<i32> {
    files::read_pids(directory)
}

/// Processor time that all processes of a cgroup of version 2 used so far, ended ones included, in
/// microseconds; none where it cannot be read.
#[must_use]
pub fn cpu_usage_us(directory: &Path) -> Option<u64> {
    files::read_number(&directory.join("cpu.stat"), "usage_usec")
}

/// Our own cgroup and its ancestors, the mount's root first.
fn outermost_first(hierarchy: &Hierarchy) -> Vec<PathBuf> {
    let inside = |path: &&Path| path.starts_with(&hierarchy.mount);
    let mut paths: Vec<_> = hierarchy
        .own_cgroup
        .ancestors()
        .take_while(inside)
        .map(Path::to_owned)
        .collect();
    paths.reverse();
    paths
}

/// Enables controllers for slots, one by one: each may be refused.
fn enable_controllers(parent: &Path, directory: &Path) -> Vec<Controller> {
    let enable = |controller: &Controller| {
        let switch = format!("+{}", controller.name());
        let own = directory.join("cgroup.subtree_control");
        if files::write(&own, &switch).is_ok() {
            return true;
        }
        let above = files::write(&parent.join("cgroup.subtree_control"), &switch);
        above.is_ok() && files::write(&own, &switch).is_ok()
    };
    LIMIT_CONTROLLERS.into_iter().filter(enable).collect()
}

fn is_writable(directory: &Path) -> bool {
    let procs = directory.join("cgroup.procs");
    rustix::fs::access(&procs, rustix::fs::Access::WRITE_OK).is_ok()
}
