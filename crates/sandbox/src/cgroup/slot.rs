//! One shim's directory in each hierarchy, reused from command to command: making and
//! removing directories per command would cost more than the command's birth.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use ostler_model::Limits;
use rustix::io::Errno;

use super::files;
use super::layout::Controller;
use super::subtree::{ShimName, Subtree};

/// Microseconds of the period that processor limits are counted in.
const CPU_PERIOD_US: u64 = 100_000;
/// Rounds of killing behind a freezer before what is left is left to the caller.
const KILL_ROUNDS: usize = 16;

/// A shim's cgroups.
#[derive(Debug)]
pub struct Slot {
    subtree: Subtree,
    name: String,
    unified: Option<OwnedFd>,
    applied: Limits,
    /// Processes in the slot that are not the command's: the shim itself.
    own_pids: u32,
    killed: bool,
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
            subtree,
            name: shim.to_string(),
            unified: None,
            applied: Limits::default(),
            own_pids: 0,
            killed: false,
        }
    }

    pub(super) fn new(subtree: Subtree, shim: ShimName) -> Self {
        let mut slot = Self::found(subtree, shim);
        slot.unified = slot.open_unified();
        slot
    }

    fn open_unified(&self) -> Option<OwnedFd> {
        let directory = self.unified_path()?;
        files::make(&directory).ok()?;
        File::open(directory).ok().map(OwnedFd::from)
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

    /// Sets the limits of the next command and says how its leader gets in.
    ///
    /// # Errors
    /// When a controller that is there refuses a limit.
    pub fn prepare(&mut self, limits: &Limits) -> Result<Entry<'_>, Errno> {
        if self.killed {
            self.renew();
        }
        let mut joins = Vec::new();
        self.limit_pids(limits.pids, &mut joins)
            .map_err(|error| errno(&error))?;
        self.limit_memory(limits.memory_bytes, &mut joins)
            .map_err(|error| errno(&error))?;
        self.limit_cpu(limits.cpu_millis, &mut joins)
            .map_err(|error| errno(&error))?;
        if self.unified.is_none()
            && let Some(freezer) = self.legacy(Controller::Freezer)
        {
            joins.push(procs(&freezer).map_err(|error| errno(&error))?);
        }
        self.applied = *limits;
        Ok(Entry {
            birthplace: self.unified.as_ref().map(AsFd::as_fd),
            joins,
        })
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
        }
        if unified(Controller::Memory) {
            self.applied.memory_bytes = None;
        }
        if unified(Controller::Cpu) {
            self.applied.cpu_millis = None;
        }
        if let Some(directory) = self.unified_path()
            && fs::remove_dir(directory).is_ok()
        {
            self.unified = self.open_unified();
        }
        self.killed = self.unified.is_none();
    }

    fn limit_pids(&self, limit: Option<u32>, joins: &mut Vec<File>) -> io::Result<()> {
        let unified = self.subtree.controllers.contains(&Controller::Pids);
        let directory = if unified {
            self.unified_path()
        } else if self.own_pids > 0 {
            self.legacy_path(Controller::Pids)
        } else {
            limit.and_then(|_| self.legacy(Controller::Pids))
        };
        let Some(directory) = directory else {
            return Ok(());
        };
        if limit != self.applied.pids {
            let value = limit.map(|count| u64::from(count) + u64::from(self.own_pids));
            files::write(&directory.join("pids.max"), &or_max(value))?;
        }
        if !unified && self.own_pids == 0 {
            joins.push(procs(&directory)?);
        }
        Ok(())
    }

    fn limit_memory(&self, limit: Option<u64>, joins: &mut Vec<File>) -> io::Result<()> {
        if self.subtree.controllers.contains(&Controller::Memory) {
            if let (Some(directory), true) =
                (self.unified_path(), limit != self.applied.memory_bytes)
            {
                files::write(&directory.join("memory.max"), &or_max(limit))?;
                let _no_swap = files::write(&directory.join("memory.swap.max"), "0");
                let _alone = files::write(&directory.join("memory.oom.group"), "1");
            }
            return Ok(());
        }
        let directory = |limit| Some((limit, self.legacy(Controller::Memory)?));
        let Some((limit, directory)) = limit.and_then(directory) else {
            return Ok(());
        };
        set_legacy_memory(&directory, limit)?;
        joins.push(procs(&directory)?);
        Ok(())
    }

    fn limit_cpu(&self, millis: Option<u32>, joins: &mut Vec<File>) -> io::Result<()> {
        let quota = millis.map(|millis| u64::from(millis) * CPU_PERIOD_US / 1_000);
        if self.subtree.controllers.contains(&Controller::Cpu) {
            if let (Some(directory), true) =
                (self.unified_path(), millis != self.applied.cpu_millis)
            {
                let value = format!("{} {CPU_PERIOD_US}", or_max(quota));
                files::write(&directory.join("cpu.max"), &value)?;
            }
            return Ok(());
        }
        let directory = |quota| Some((quota, self.legacy(Controller::Cpu)?));
        let Some((quota, directory)) = quota.and_then(directory) else {
            return Ok(());
        };
        files::write(
            &directory.join("cpu.cfs_period_us"),
            &CPU_PERIOD_US.to_string(),
        )?;
        files::write(&directory.join("cpu.cfs_quota_us"), &quota.to_string())?;
        joins.push(procs(&directory)?);
        Ok(())
    }

    /// How many processes were killed for their memory here; 0 without a memory limit.
    #[must_use]
    pub fn oom_kills(&self) -> u64 {
        if self.applied.memory_bytes.is_none() {
            return 0;
        }
        let file = if self.subtree.controllers.contains(&Controller::Memory) {
            self.unified_path()
                .map(|directory| directory.join("memory.events"))
        } else {
            self.legacy_path(Controller::Memory)
                .map(|directory| directory.join("memory.oom_control"))
        };
        file.and_then(|file| files::number(&file, "oom_kill"))
            .unwrap_or(0)
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

    /// Stops everybody in the slot, or lets them go on; whether it could.
    #[must_use]
    pub fn freeze(&self, frozen: bool) -> bool {
        let Some(directory) = self.unified_path() else {
            return false;
        };
        let value = if frozen { "1" } else { "0" };
        files::write(&directory.join("cgroup.freeze"), value).is_ok()
    }

    /// Removes the slot's directories; the calling shim goes back to where it came from.
    pub fn abandon(mut self) {
        if let Some(above) = self.subtree.legacy.get(&Controller::Pids)
            && self.own_pids > 0
        {
            let _stays = files::write(&above.join("cgroup.procs"), "0");
        }
        self.unified = None;
        for directory in self
            .subtree
            .unified
            .iter()
            .chain(self.subtree.legacy.values())
        {
            let _absent_or_busy = fs::remove_dir(directory.join(&self.name));
        }
    }

    fn unified_path(&self) -> Option<PathBuf> {
        self.subtree
            .unified
            .as_ref()
            .map(|directory| directory.join(&self.name))
    }

    fn legacy_path(&self, controller: Controller) -> Option<PathBuf> {
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

fn procs(directory: &Path) -> io::Result<File> {
    fs::OpenOptions::new()
        .write(true)
        .open(directory.join("cgroup.procs"))
}

/// Memory and swap together may not be lower than memory: whichever way the limit moves, one
/// order of writing works.
fn set_legacy_memory(directory: &Path, limit: u64) -> io::Result<()> {
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

fn or_max(value: Option<u64>) -> String {
    value.map_or_else(|| "max".to_owned(), |value| value.to_string())
}

fn errno(error: &io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}
