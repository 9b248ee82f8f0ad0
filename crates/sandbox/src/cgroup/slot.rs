//! One shim's directory in each hierarchy, reused from command to command: making and
//! removing directories per command would cost more than the command's spawn.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use ostler_model::{LimitKind, Limits};
use ostler_sys::errno::errno_of;
use rustix::event::PollFlags;
use rustix::io::Errno;

use super::files;
use super::freeze::{self, FreezeOutcome};
use super::hierarchy::Controller;
use super::limit_events::LimitWatch;
use super::limits::{self, LimitMechanism};
use super::owner;
use super::root::{CgroupRoot, ShimName};

/// How many rounds of killing behind a freezer are made before the caller takes over.
const KILL_ROUNDS: usize = 16;

/// A shim's cgroups.
#[derive(Debug)]
pub struct CgroupSlot {
    pub(super) root: CgroupRoot,
    name: String,
    /// The directory in the unified hierarchy, locked.
    pub(super) unified: Option<OwnedFd>,
    /// Without a unified hierarchy, a directory of version 1, locked.
    pub(super) lock: Option<OwnedFd>,
    pub(super) applied: Limits,
    /// Processes in the slot that are not the command's: the shim itself.
    pub(super) own_pids: u32,
    killed: bool,
    pids_watch: Option<LimitWatch>,
    memory_watch: Option<LimitWatch>,
    /// Limits that the command reached.
    reached: Vec<LimitKind>,
}

/// Helper processes of a command: children of its shim, and their children.
#[derive(Debug, Clone, Copy, Default)]
pub struct HelperPids<'a> {
    /// The pids of all of them.
    pub pids: &'a [i32],
    /// How many were spawned in the slot.
    pub in_slot: u32,
}

/// How a child gets into its slot: spawned there, or joining before exec.
#[derive(Debug)]
pub struct CgroupJoin<'a> {
    clone_into: Option<BorrowedFd<'a>>,
    joins: Vec<File>,
}

impl CgroupJoin<'_> {
    /// Joins no cgroup.
    #[must_use]
    pub const fn none() -> Self {
        Self {
            clone_into: None,
            joins: Vec::new(),
        }
    }

    /// The directory to spawn into, for clone3(2).
    #[must_use]
    pub const fn clone_into(&self) -> Option<BorrowedFd<'_>> {
        self.clone_into
    }

    /// `cgroup.procs` files into which the child writes `0` before exec.
    pub fn joins(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.joins.iter().map(AsFd::as_fd)
    }
}

impl CgroupSlot {
    pub(super) fn existing(root: CgroupRoot, shim: ShimName) -> Self {
        Self {
            name: root.slot_name(shim),
            root,
            unified: None,
            lock: None,
            applied: Limits::default(),
            own_pids: 0,
            killed: false,
            pids_watch: None,
            memory_watch: None,
            reached: Vec::new(),
        }
    }

    pub(super) fn new(root: CgroupRoot, shim: ShimName) -> Self {
        let mut slot = Self::existing(root, shim);
        slot.open();
        slot
    }

    /// Creates and locks the slot's first directory.
    pub(super) fn open(&mut self) {
        self.unified = self.open_unified();
        if self.unified.is_none() {
            self.lock = self
                .lock_path()
                .and_then(|path| owner::make_and_lock(&path));
        }
    }

    fn open_unified(&self) -> Option<OwnedFd> {
        owner::make_and_lock(&self.unified_path()?)
    }

    /// The directory that is locked where there is no unified hierarchy.
    pub(super) fn lock_path(&self) -> Option<PathBuf> {
        let first = self.root.legacy.values().next()?;
        let needed = self.root.unified.is_none();
        needed.then(|| first.join(&self.name))
    }

    /// Forgets which limits are in force, except these.
    pub(super) fn forget_limits(&mut self, applied: Limits) {
        self.applied = applied;
        self.pids_watch = None;
        self.memory_watch = None;
        self.killed = false;
    }

    /// Moves the calling process, a shim, into the slot's pids cgroup of version 1: its children
    /// are spawned there at no cost, and the limit counts it.
    pub fn attach_shim(&mut self) {
        if self.root.controllers.contains(&Controller::Pids) {
            return;
        }
        if let Some(directory) = self.make_legacy_dir(Controller::Pids)
            && files::write(&directory.join("cgroup.procs"), "0").is_ok()
        {
            self.own_pids = 1;
        }
    }

    /// Raises the limit for helpers that are spawned before the next command, whatever limit the
    /// last one had; returns the directory in which they are spawned.
    ///
    /// # Errors
    /// When the limit cannot be lifted.
    pub fn prepare_for_helpers(&mut self) -> Result<Option<BorrowedFd<'_>>, Errno> {
        self.ensure_usable();
        if self.applied.pids.take().is_some() {
            let mechanism = self.mechanism(Controller::Pids, true);
            mechanism.set_pids(None).map_err(|error| errno_of(&error))?;
        }
        Ok(self.unified.as_ref().map(AsFd::as_fd))
    }

    /// Whether a cgroup counts processes here.
    #[must_use]
    pub fn counts_processes(&self) -> bool {
        self.root.limit_version(Controller::Pids).is_some()
    }

    /// Sets the limits of the next command and returns how its leader joins. Helpers are not
    /// counted: version 1 counts them as children of the shim, and they are moved out; version 2
    /// counts those in the slot, and the limit is that much higher.
    ///
    /// # Errors
    /// When a controller that is there refuses a limit.
    pub fn prepare(
        &mut self,
        limits: &Limits,
        helpers: &HelperPids<'_>,
    ) -> Result<CgroupJoin<'_>, Errno> {
        let mut joins = Vec::new();
        self.exempt_helpers(helpers.pids);
        let counted = self.counted_helpers(helpers);
        // The process that spawns into a jail is there until it is reaped.
        let room = u32::from(!helpers.pids.is_empty());
        self.apply_limits(limits, counted + room, &mut joins)
            .map_err(|error| errno_of(&error))?;
        Ok(CgroupJoin {
            clone_into: self.unified.as_ref().map(AsFd::as_fd),
            joins,
        })
    }

    /// Sets the final limit on processes once the command is spawned, without room for the spawning
    /// process.
    pub fn restore_pids_limit(&mut self, limits: &Limits, helpers: &HelperPids<'_>) {
        let counted = self.counted_helpers(helpers);
        let limit = limits.pids.map(|count| count.saturating_add(counted));
        if limit != self.applied.pids {
            let mechanism = self.mechanism(Controller::Pids, true);
            let value = limit.map(|count| u64::from(count) + u64::from(self.own_pids));
            if mechanism.set_pids(value).is_ok() {
                self.applied.pids = limit;
            }
        }
    }

    fn counted_helpers(&self, helpers: &HelperPids<'_>) -> u32 {
        if self.root.controllers.contains(&Controller::Pids) {
            helpers.in_slot
        } else {
            0
        }
    }

    fn exempt_helpers(&self, helpers: &[i32]) {
        if let Some(above) = self.root.legacy.get(&Controller::Pids)
            && self.own_pids > 0
        {
            for pid in helpers {
                let _gone = files::write(&above.join("cgroup.procs"), &pid.to_string());
            }
        }
    }

    fn apply_limits(
        &mut self,
        limits: &Limits,
        room: u32,
        joins: &mut Vec<File>,
    ) -> io::Result<()> {
        self.ensure_usable();
        let pids = limits.pids.map(|count| count.saturating_add(room));
        self.limit_pids(pids, joins)?;
        let memory = self.required_mechanism(Controller::Memory, limits.memory_bytes.is_some())?;
        if limits.memory_bytes != self.applied.memory_bytes {
            self.memory_watch = None;
            memory.set_memory(limits.memory_bytes)?;
        }
        joins.extend(memory.open_join_file()?);
        let cpu = self.required_mechanism(Controller::Cpu, limits.cpu_millis.is_some())?;
        if limits.cpu_millis != self.applied.cpu_millis {
            cpu.set_cpu(limits.cpu_millis)?;
        }
        joins.extend(cpu.open_join_file()?);
        if self.unified.is_none()
            && let Some(freezer) = self.make_legacy_dir(Controller::Freezer)
        {
            joins.push(limits::open_procs(&freezer)?);
        }
        self.applied = Limits { pids, ..*limits };
        self.watch_memory(&memory);
        Ok(())
    }

    fn ensure_usable(&mut self) {
        if self.killed {
            self.recreate();
        } else if self.unified.is_none() && self.root.unified.is_some() {
            self.recreate_missing();
        }
    }

    /// Recreates the directory after a kill. The kernel numbers the kills of a cgroup so that no
    /// fork escapes them; some versions (seen on 6.18) compare that number, for a child spawned
    /// into the cgroup by clone3(2), with the one of its parent's cgroup: in a directory that was
    /// ever killed, every such child would be killed at spawn.
    fn recreate(&mut self) {
        self.unified = None;
        let unified = |controller| self.root.controllers.contains(&controller);
        if unified(Controller::Pids) {
            self.applied.pids = None;
            self.pids_watch = None;
        }
        if unified(Controller::Memory) {
            self.applied.memory_bytes = None;
            self.memory_watch = None;
        }
        if unified(Controller::Cpu) {
            self.applied.cpu_millis = None;
        }
        if let Some(directory) = self.unified_path()
            && is_removed(&fs::remove_dir(directory))
        {
            self.unified = self.open_unified();
        }
        self.killed = self.unified.is_none();
    }

    /// The mechanism of one controller; with `create`, a directory of version 1 is created.
    fn mechanism(&self, controller: Controller, create: bool) -> LimitMechanism {
        if self.root.controllers.contains(&controller) {
            return self
                .unified_path()
                .map_or(LimitMechanism::Absent, LimitMechanism::Unified);
        }
        let legacy = if controller == Controller::Pids && self.own_pids > 0 {
            // The shim is in it, so nobody can have removed it.
            self.legacy_path(controller)
        } else if create {
            self.make_legacy_dir(controller)
        } else {
            None
        };
        legacy.map_or(LimitMechanism::Absent, LimitMechanism::Legacy)
    }

    /// The same; an error where the controller exists and its directory cannot be created: a
    /// requested limit is never left out.
    fn required_mechanism(
        &self,
        controller: Controller,
        required: bool,
    ) -> io::Result<LimitMechanism> {
        match self.mechanism(controller, required) {
            LimitMechanism::Absent if required && self.root.limit_version(controller).is_some() => {
                Err(io::ErrorKind::NotFound.into())
            }
            means @ (LimitMechanism::Unified(_)
            | LimitMechanism::Legacy(_)
            | LimitMechanism::Absent) => Ok(means),
        }
    }

    fn limit_pids(&mut self, limit: Option<u32>, joins: &mut Vec<File>) -> io::Result<()> {
        let pids =
            self.required_mechanism(Controller::Pids, limit.is_some() || self.own_pids > 0)?;
        if limit != self.applied.pids {
            pids.set_pids(limit.map(|count| u64::from(count) + u64::from(self.own_pids)))?;
        }
        if self.own_pids == 0 {
            joins.extend(pids.open_join_file()?);
        }
        if limit.is_some() && self.pids_watch.is_none() {
            self.pids_watch = LimitWatch::for_pids(&pids);
        }
        Ok(())
    }

    fn watch_memory(&mut self, memory: &LimitMechanism) {
        if self.applied.memory_bytes.is_none() {
            self.memory_watch = None;
        } else if self.memory_watch.is_none() {
            self.memory_watch = LimitWatch::for_memory(memory);
        }
        self.reached = Vec::new();
    }

    /// The descriptors to poll, and the events, to be notified that a limit was reached.
    pub fn poll_targets(&self) -> impl Iterator<Item = (BorrowedFd<'_>, PollFlags)> {
        let watches = [&self.pids_watch, &self.memory_watch];
        // Without a limit no counter is of interest.
        let limited = [
            self.applied.pids.is_some(),
            self.applied.memory_bytes.is_some(),
        ];
        watches
            .into_iter()
            .zip(limited)
            .filter_map(|(alarm, limited)| alarm.as_ref().filter(|_| limited))
            .map(LimitWatch::poll_target)
    }

    /// Limits that were reached since [`prepare`](Self::prepare) and not returned by an earlier
    /// call.
    pub fn take_reached_limits(&mut self) -> Vec<LimitKind> {
        let watched = [
            (LimitKind::Pids, self.applied.pids.is_some()),
            (LimitKind::Memory, self.applied.memory_bytes.is_some()),
        ];
        let mut new = Vec::new();
        for (limit, _) in watched.into_iter().filter(|(_, limited)| *limited) {
            let watch = match limit {
                LimitKind::Pids => &mut self.pids_watch,
                LimitKind::Memory
                | LimitKind::Cpu
                | LimitKind::OpenFiles
                | LimitKind::FileSize
                | LimitKind::Disk => &mut self.memory_watch,
            };
            let fired = watch.as_mut().map_or(Ok(false), LimitWatch::has_fired);
            match fired {
                Ok(true) if !self.reached.contains(&limit) => {
                    self.reached.push(limit);
                    new.push(limit);
                }
                Ok(_) => {}
                Err(_) => *watch = None,
            }
        }
        new
    }

    /// How many processes the out-of-memory killer ended here; 0 without a memory limit.
    #[must_use]
    pub fn oom_kills(&self) -> u64 {
        if self.applied.memory_bytes.is_none() {
            return 0;
        }
        self.mechanism(Controller::Memory, true).oom_kills()
    }

    /// Processor time in user and kernel mode that the slot's members used, unreaped ones included,
    /// in microseconds; none without the unified hierarchy.
    #[must_use]
    pub fn cpu_time(&self) -> Option<(u64, u64)> {
        let text = fs::read_to_string(self.unified_path()?.join("cpu.stat")).ok()?;
        let number = |key| files::parse_number(&text, key);
        Some((number("user_usec")?, number("system_usec")?))
    }

    /// Every process in the slot except the shim.
    #[must_use]
    pub fn members(&self) -> Vec<i32> {
        let directory = self
            .unified_path()
            .or_else(|| self.legacy_path(Controller::Freezer));
        directory
            .map(|directory| files::read_pids(&directory))
            .unwrap_or_default()
    }

    /// Kills every process in the slot, as far as the kernel supports that: by `cgroup.kill`, else
    /// behind a freezer so that none escapes by forking.
    pub fn kill(&mut self) {
        if let Some(directory) = self.unified_path() {
            self.killed = true;
            if files::write(&directory.join("cgroup.kill"), "1").is_ok() {
                return;
            }
            kill_frozen(&directory, "cgroup.freeze", "1", "0");
        } else if let Some(directory) = self.legacy_path(Controller::Freezer) {
            kill_frozen(&directory, "freezer.state", "FROZEN", "THAWED");
        }
    }

    /// Freezes or thaws every process in the slot. Whether there are any is for the caller to know.
    #[must_use]
    pub fn freeze(&self, frozen: bool) -> FreezeOutcome {
        if let Some(directory) = self.unified_path() {
            return freeze::unified(&directory, frozen);
        }
        match self.legacy_path(Controller::Freezer) {
            Some(directory) => freeze::legacy(&directory, frozen),
            None => FreezeOutcome::Unsupported,
        }
    }

    /// Removes the slot's directories; the calling shim returns to its original cgroup.
    pub fn remove(mut self) {
        if let Some(above) = self.root.legacy.get(&Controller::Pids)
            && self.own_pids > 0
        {
            let _stays = files::write(&above.join("cgroup.procs"), "0");
        }
        self.unified = None;
        self.lock = None;
        for directory in self.root.directories() {
            let _absent_or_busy = fs::remove_dir(directory.join(&self.name));
        }
    }

    pub(super) fn unified_path(&self) -> Option<PathBuf> {
        self.root
            .unified
            .as_ref()
            .map(|directory| directory.join(&self.name))
    }

    pub(super) fn legacy_path(&self, controller: Controller) -> Option<PathBuf> {
        let directory = self.root.legacy.get(&controller)?;
        Some(directory.join(&self.name))
    }

    /// The directory in a hierarchy of version 1, made where it is missing.
    fn make_legacy_dir(&self, controller: Controller) -> Option<PathBuf> {
        let directory = self.legacy_path(controller)?;
        files::make_dir(&directory).ok()?;
        Some(directory)
    }
}

/// Whether the directory does not exist after the call.
fn is_removed(removed: &io::Result<()>) -> bool {
    let absent = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
    removed.as_ref().err().is_none_or(absent)
}

fn kill_frozen(directory: &Path, file: &str, freeze: &str, thaw: &str) {
    let switch = directory.join(file);
    for _ in 0..KILL_ROUNDS {
        let _not_frozen = files::write(&switch, freeze);
        let members = files::read_pids(directory);
        for &pid in &members {
            if let Some(pid) = rustix::process::Pid::from_raw(pid) {
                let _gone = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
            }
        }
        let _not_frozen = files::write(&switch, thaw);
        if members.is_empty() {
            return;
        }
    }
}
