//! One shim's directory in each hierarchy, reused from command to command: making and
//! removing directories per command would cost more than the command's birth.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use ostler_model::{Limit, Limits};
use rustix::event::PollFlags;
use rustix::io::Errno;

use super::alarm::Alarm;
use super::files;
use super::freeze::{self, Freeze};
use super::layout::Controller;
use super::limits::{self, Means};
use super::owner;
use super::subtree::{ShimName, Subtree};

/// Rounds of killing behind a freezer before what is left is left to the caller.
const KILL_ROUNDS: usize = 16;

/// A shim's cgroups.
#[derive(Debug)]
pub struct Slot {
    pub(super) subtree: Subtree,
    name: String,
    /// The directory in the unified hierarchy, locked.
    pub(super) unified: Option<OwnedFd>,
    /// Without that, a directory of version 1, locked.
    pub(super) lock: Option<OwnedFd>,
    pub(super) applied: Limits,
    /// Processes in the slot that are not the command's: the shim itself.
    pub(super) own_pids: u32,
    killed: bool,
    pids_alarm: Option<Alarm>,
    memory_alarm: Option<Alarm>,
    /// Limits that the command reached.
    hit: Vec<Limit>,
}

/// Processes of ours around a command: children of its shim, or theirs.
#[derive(Debug, Clone, Copy, Default)]
pub struct Helpers<'a> {
    /// All of them.
    pub pids: &'a [i32],
    /// How many were born in the slot.
    pub inside: u32,
}

/// How a child gets into its slot: born there, or joining before exec.
#[derive(Debug)]
pub struct Entry<'a> {
    birthplace: Option<BorrowedFd<'a>>,
    joins: Vec<File>,
}

impl Entry<'_> {
    /// Without any cgroup.
    #[must_use]
    pub const fn none() -> Self {
        Self {
            birthplace: None,
            joins: Vec::new(),
        }
    }

    /// The directory to be born in, for clone3(2).
    #[must_use]
    pub const fn birthplace(&self) -> Option<BorrowedFd<'_>> {
        self.birthplace
    }

    /// `cgroup.procs` files into which the child writes `0` before exec.
    pub fn joins(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.joins.iter().map(AsFd::as_fd)
    }
}

impl Slot {
    pub(super) fn found(subtree: Subtree, shim: ShimName) -> Self {
        Self {
            name: subtree.slot_name(shim),
            subtree,
            unified: None,
            lock: None,
            applied: Limits::default(),
            own_pids: 0,
            killed: false,
            pids_alarm: None,
            memory_alarm: None,
            hit: Vec::new(),
        }
    }

    pub(super) fn new(subtree: Subtree, shim: ShimName) -> Self {
        let mut slot = Self::found(subtree, shim);
        slot.open();
        slot
    }

    /// Makes and locks the slot's first directory.
    pub(super) fn open(&mut self) {
        self.unified = self.open_unified();
        if self.unified.is_none() {
            self.lock = self.lock_path().and_then(|path| owner::make(&path));
        }
    }

    fn open_unified(&self) -> Option<OwnedFd> {
        owner::make(&self.unified_path()?)
    }

    /// The directory that is locked where there is no unified hierarchy.
    pub(super) fn lock_path(&self) -> Option<PathBuf> {
        let first = self.subtree.legacy.values().next()?;
        let needed = self.subtree.unified.is_none();
        needed.then(|| first.join(&self.name))
    }

    /// Nothing is known any more of limits in force, but for these.
    pub(super) fn forget_limits(&mut self, applied: Limits) {
        self.applied = applied;
        self.pids_alarm = None;
        self.memory_alarm = None;
        self.killed = false;
    }

    /// Moves the calling process, a shim, into the slot's pids cgroup of version 1: its
    /// children are born there for free, and the limit counts it in.
    pub fn hold_shim(&mut self) {
        if self.subtree.controllers.contains(&Controller::Pids) {
            return;
        }
        if let Some(directory) = self.legacy(Controller::Pids)
            && files::write(&directory.join("cgroup.procs"), "0").is_ok()
        {
            self.own_pids = 1;
        }
    }

    /// Makes room for helpers that are born before the next command, whatever limit the last
    /// one had; the directory in which they are born.
    ///
    /// # Errors
    /// When the limit cannot be lifted.
    pub fn clear(&mut self) -> Result<Option<BorrowedFd<'_>>, Errno> {
        self.make_usable();
        if self.applied.pids.take().is_some() {
            let pids = self.means(Controller::Pids, true);
            pids.set_pids(None).map_err(|error| errno(&error))?;
        }
        Ok(self.unified.as_ref().map(AsFd::as_fd))
    }

    /// Whether a cgroup counts processes here.
    #[must_use]
    pub fn counts_processes(&self) -> bool {
        self.subtree.limits(Controller::Pids).is_some()
    }

    /// Sets the limits of the next command and says how its leader gets in. Its helpers are not
    /// counted: version 1 put them into the command's count as children of the shim, and they
    /// are taken out of it; version 2 counts those in the slot, and the limit is so much higher.
    ///
    /// # Errors
    /// When a controller that is there refuses a limit.
    pub fn prepare(&mut self, limits: &Limits, helpers: &Helpers<'_>) -> Result<Entry<'_>, Errno> {
        let mut joins = Vec::new();
        self.exempt(helpers.pids);
        let counted = self.counted(helpers);
        // Whoever gives birth in a cell is there until it is reaped.
        let room = u32::from(!helpers.pids.is_empty());
        self.apply(limits, counted + room, &mut joins)
            .map_err(|error| errno(&error))?;
        Ok(Entry {
            birthplace: self.unified.as_ref().map(AsFd::as_fd),
            joins,
        })
    }

    /// The command is born: the limit on processes is its own, without room for who gave birth.
    pub fn settle(&mut self, limits: &Limits, helpers: &Helpers<'_>) {
        let counted = self.counted(helpers);
        let limit = limits.pids.map(|count| count.saturating_add(counted));
        if limit != self.applied.pids {
            let pids = self.means(Controller::Pids, true);
            let value = limit.map(|count| u64::from(count) + u64::from(self.own_pids));
            if pids.set_pids(value).is_ok() {
                self.applied.pids = limit;
            }
        }
    }

    fn counted(&self, helpers: &Helpers<'_>) -> u32 {
        if self.subtree.controllers.contains(&Controller::Pids) {
            helpers.inside
        } else {
            0
        }
    }

    fn exempt(&self, helpers: &[i32]) {
        if let Some(above) = self.subtree.legacy.get(&Controller::Pids)
            && self.own_pids > 0
        {
            for pid in helpers {
                let _gone = files::write(&above.join("cgroup.procs"), &pid.to_string());
            }
        }
    }

    fn apply(&mut self, limits: &Limits, room: u32, joins: &mut Vec<File>) -> io::Result<()> {
        self.make_usable();
        let pids = limits.pids.map(|count| count.saturating_add(room));
        self.limit_pids(pids, joins)?;
        let memory = self.needed(Controller::Memory, limits.memory_bytes.is_some())?;
        if limits.memory_bytes != self.applied.memory_bytes {
            self.memory_alarm = None;
            memory.set_memory(limits.memory_bytes)?;
        }
        joins.extend(memory.join()?);
        let cpu = self.needed(Controller::Cpu, limits.cpu_millis.is_some())?;
        if limits.cpu_millis != self.applied.cpu_millis {
            cpu.set_cpu(limits.cpu_millis)?;
        }
        joins.extend(cpu.join()?);
        if self.unified.is_none()
            && let Some(freezer) = self.legacy(Controller::Freezer)
        {
            joins.push(limits::procs(&freezer)?);
        }
        self.applied = Limits { pids, ..*limits };
        self.arm(&memory);
        Ok(())
    }

    fn make_usable(&mut self) {
        if self.killed {
            self.renew();
        } else if self.unified.is_none() && self.subtree.unified.is_some() {
            self.remake();
        }
    }

    /// A fresh directory after a kill. The kernel numbers the kills of a cgroup so that no fork
    /// escapes them; some versions (seen on 6.18) compare that number, for a child born into
    /// the cgroup by clone3(2), with the one of its parent's cgroup: in a directory that was
    /// ever killed, every such child would be killed at birth.
    fn renew(&mut self) {
        self.unified = None;
        let unified = |controller| self.subtree.controllers.contains(&controller);
        if unified(Controller::Pids) {
            self.applied.pids = None;
            self.pids_alarm = None;
        }
        if unified(Controller::Memory) {
            self.applied.memory_bytes = None;
            self.memory_alarm = None;
        }
        if unified(Controller::Cpu) {
            self.applied.cpu_millis = None;
        }
        if let Some(directory) = self.unified_path()
            && is_gone(&fs::remove_dir(directory))
        {
            self.unified = self.open_unified();
        }
        self.killed = self.unified.is_none();
    }

    /// The means of one controller; a directory of version 1 is made where it is `wanted`.
    fn means(&self, controller: Controller, wanted: bool) -> Means {
        if self.subtree.controllers.contains(&controller) {
            return self.unified_path().map_or(Means::Absent, Means::Unified);
        }
        let legacy = if wanted {
            self.legacy(controller)
        } else {
            None
        };
        legacy.map_or(Means::Absent, Means::Legacy)
    }

    /// The same; an error where the controller is there and its directory cannot be made: a
    /// limit that was asked for is never left out.
    fn needed(&self, controller: Controller, wanted: bool) -> io::Result<Means> {
        match self.means(controller, wanted) {
            Means::Absent if wanted && self.subtree.limits(controller).is_some() => {
                Err(io::ErrorKind::NotFound.into())
            }
            means @ (Means::Unified(_) | Means::Legacy(_) | Means::Absent) => Ok(means),
        }
    }

    fn limit_pids(&mut self, limit: Option<u32>, joins: &mut Vec<File>) -> io::Result<()> {
        let pids = self.needed(Controller::Pids, limit.is_some() || self.own_pids > 0)?;
        if limit != self.applied.pids {
            pids.set_pids(limit.map(|count| u64::from(count) + u64::from(self.own_pids)))?;
        }
        if self.own_pids == 0 {
            joins.extend(pids.join()?);
        }
        if limit.is_some() && self.pids_alarm.is_none() {
            self.pids_alarm = Alarm::of_pids(&pids);
        }
        Ok(())
    }

    fn arm(&mut self, memory: &Means) {
        if self.applied.memory_bytes.is_none() {
            self.memory_alarm = None;
        } else if self.memory_alarm.is_none() {
            self.memory_alarm = Alarm::of_memory(memory);
        }
        self.hit = Vec::new();
    }

    /// What to poll, and for what, to hear that a limit was reached.
    pub fn alarms(&self) -> impl Iterator<Item = (BorrowedFd<'_>, PollFlags)> {
        let alarms = [&self.pids_alarm, &self.memory_alarm];
        // Without a limit nothing is counted that anybody asked about.
        let limited = [
            self.applied.pids.is_some(),
            self.applied.memory_bytes.is_some(),
        ];
        alarms
            .into_iter()
            .zip(limited)
            .filter_map(|(alarm, limited)| alarm.as_ref().filter(|_| limited))
            .map(Alarm::polled)
    }

    /// Limits that were reached since [`prepare`](Self::prepare) and not told by an earlier
    /// call.
    pub fn hits(&mut self) -> Vec<Limit> {
        let asked = [
            (Limit::Pids, self.applied.pids.is_some()),
            (Limit::Memory, self.applied.memory_bytes.is_some()),
        ];
        let mut news = Vec::new();
        for (limit, _) in asked.into_iter().filter(|(_, limited)| *limited) {
            let alarm = match limit {
                Limit::Pids => &mut self.pids_alarm,
                Limit::Memory | Limit::Cpu | Limit::OpenFiles | Limit::FileSize | Limit::Disk => {
                    &mut self.memory_alarm
                }
            };
            let rung = alarm.as_mut().map_or(Ok(false), Alarm::has_rung);
            match rung {
                Ok(true) if !self.hit.contains(&limit) => {
                    self.hit.push(limit);
                    news.push(limit);
                }
                Ok(_) => {}
                Err(_) => *alarm = None,
            }
        }
        news
    }

    /// How many processes were killed for their memory here; 0 without a memory limit.
    #[must_use]
    pub fn oom_kills(&self) -> u64 {
        if self.applied.memory_bytes.is_none() {
            return 0;
        }
        self.means(Controller::Memory, true).oom_kills()
    }

    /// Microseconds of processor time in user and kernel mode that the slot's members used,
    /// those that nobody waited for too; none without the unified hierarchy.
    #[must_use]
    pub fn cpu_time(&self) -> Option<(u64, u64)> {
        let text = fs::read_to_string(self.unified_path()?.join("cpu.stat")).ok()?;
        let number = |key| files::number_in(&text, key);
        Some((number("user_usec")?, number("system_usec")?))
    }

    /// Everybody in the slot but the shim.
    #[must_use]
    pub fn members(&self) -> Vec<i32> {
        let directory = self
            .unified_path()
            .or_else(|| self.legacy_path(Controller::Freezer));
        directory
            .map(|directory| files::pids(&directory))
            .unwrap_or_default()
    }

    /// Kills everybody in the slot, as far as the kernel can do that: by `cgroup.kill`, else
    /// behind a freezer so that nobody forks away.
    pub fn kill(&mut self) {
        if let Some(directory) = self.unified_path() {
            self.killed = true;
            if files::write(&directory.join("cgroup.kill"), "1").is_ok() {
                return;
            }
            kill_frozen(&directory, ("cgroup.freeze", "1", "0"));
        } else if let Some(directory) = self.legacy_path(Controller::Freezer) {
            kill_frozen(&directory, ("freezer.state", "FROZEN", "THAWED"));
        }
    }

    /// Makes everybody in the slot stand still, or go on. Whether there is anybody in it is
    /// the caller's to know.
    #[must_use]
    pub fn freeze(&self, frozen: bool) -> Freeze {
        if let Some(directory) = self.unified_path() {
            return freeze::unified(&directory, frozen);
        }
        match self.legacy_path(Controller::Freezer) {
            Some(directory) => freeze::legacy(&directory, frozen),
            None => Freeze::Unable,
        }
    }

    /// Removes the slot's directories; the calling shim goes back to where it came from.
    pub fn abandon(mut self) {
        if let Some(above) = self.subtree.legacy.get(&Controller::Pids)
            && self.own_pids > 0
        {
            let _stays = files::write(&above.join("cgroup.procs"), "0");
        }
        self.unified = None;
        self.lock = None;
        for directory in self.subtree.directories() {
            let _absent_or_busy = fs::remove_dir(directory.join(&self.name));
        }
    }

    pub(super) fn unified_path(&self) -> Option<PathBuf> {
        self.subtree
            .unified
            .as_ref()
            .map(|directory| directory.join(&self.name))
    }

    pub(super) fn legacy_path(&self, controller: Controller) -> Option<PathBuf> {
        let directory = self.subtree.legacy.get(&controller)?;
        Some(directory.join(&self.name))
    }

    /// The directory in a hierarchy of version 1, made where it is missing.
    fn legacy(&self, controller: Controller) -> Option<PathBuf> {
        let directory = self.legacy_path(controller)?;
        files::make(&directory).ok()?;
        Some(directory)
    }
}

/// Whether a directory is not there after this.
fn is_gone(removed: &io::Result<()>) -> bool {
    let absent = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
    removed.as_ref().err().is_none_or(absent)
}

fn kill_frozen(directory: &Path, (file, freeze, thaw): (&str, &str, &str)) {
    let switch = directory.join(file);
    for _ in 0..KILL_ROUNDS {
        let _not_frozen = files::write(&switch, freeze);
        let members = files::pids(directory);
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

fn errno(error: &io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}
