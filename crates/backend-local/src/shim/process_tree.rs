//! The processes of one execution: finding, signalling and reaping them.

use std::collections::BTreeSet;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use ostler_backend::LaunchPlan;
use ostler_model::termination::WaitStatus;
use ostler_model::{AutorunReport, ExecutionId, OrphanPolicy, Usage};
use ostler_sys::signals;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::jailed::RunningJail;
use super::state::ShimMode;
use crate::sys::clone;
use crate::sys::proc;
use crate::sys::wait::{self, ReapOutcome};

/// The environment variable that marks every process of an execution.
pub(crate) const EXECUTION_VARIABLE: &str = "OSTLER_EXECUTION";

/// How many rounds [`ProcessTree::stop_all`] searches for processes that were started while others
/// were stopped.
const STOP_ROUNDS: usize = 32;

/// The environment entry `OSTLER_EXECUTION=<id>`.
pub(crate) fn marker(id: ExecutionId) -> Vec<u8> {
    format!("{EXECUTION_VARIABLE}={id}").into_bytes()
}

/// The configuration of a tree before it is spawned.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TreeConfig {
    pub(crate) mode: ShimMode,
    pub(crate) id: ExecutionId,
    pub(crate) orphan_policy: OrphanPolicy,
}

impl TreeConfig {
    pub(crate) fn from_plan(mode: ShimMode, plan: &LaunchPlan) -> Self {
        Self {
            mode,
            id: plan.id,
            orphan_policy: plan.orphan_policy,
        }
    }
}

/// A leader and its descendants.
#[derive(Debug)]
pub(crate) struct ProcessTree {
    mode: ShimMode,
    marker: Vec<u8>,
    orphan_policy: OrphanPolicy,
    pid: i32,
    pidfd: OwnedFd,
    status: Option<WaitStatus>,
    /// The status of the last process kept after the leader that failed.
    failed_status: Option<WaitStatus>,
    /// Whether processes the leader left continue the attempt.
    detached: bool,
    /// On a thread, a process that outlived the leader: its end wakes the shim to search for the
    /// others.
    sentinel: Option<OwnedFd>,
    usage: Usage,
    left_behind: BTreeSet<i32>,
    /// The jail around the tree, at level high.
    jail: Option<RunningJail>,
}

impl ProcessTree {
    /// The tree of a leader that was just spawned.
    pub(crate) fn new(
        config: TreeConfig,
        child: clone::SpawnedChild,
        jail: Option<RunningJail>,
    ) -> Self {
        Self {
            mode: config.mode,
            marker: marker(config.id),
            orphan_policy: config.orphan_policy,
            failed_status: None,
            detached: false,
            sentinel: None,
            pid: child.pid,
            pidfd: child.pidfd,
            status: None,
            usage: Usage::default(),
            left_behind: BTreeSet::new(),
            jail,
        }
    }

    /// The leader's pid.
    pub(crate) fn pid(&self) -> u32 {
        self.pid.unsigned_abs()
    }

    /// Readable when the leader has ended; after that, when the jail has, or on a thread one of the
    /// remaining processes.
    pub(crate) fn exit_fd(&self) -> Option<BorrowedFd<'_>> {
        if self.status.is_none() {
            return Some(self.pidfd.as_fd());
        }
        match &self.jail {
            Some(jail) => jail.pidfd(),
            None => self.sentinel.as_ref().map(AsFd::as_fd),
        }
    }

    /// Whether it runs in a jail.
    pub(crate) const fn is_jailed(&self) -> bool {
        self.jail.is_some()
    }

    /// Files in its workspace that run automatically and that it created or changed.
    pub(crate) fn autorun(&self) -> AutorunReport {
        let jail = self.jail.as_ref();
        jail.map_or_else(AutorunReport::default, RunningJail::autorun)
    }

    /// The leader's status, once it has ended.
    pub(crate) const fn status(&self) -> Option<WaitStatus> {
        self.status
    }

    /// What happens to remaining processes: they are not kept where the leader failed.
    pub(crate) fn orphan_policy(&self) -> OrphanPolicy {
        match self.status {
            Some(status) if is_failure(status) => OrphanPolicy::Kill,
            Some(_) | None => self.orphan_policy,
        }
    }

    /// How the tree ended: as its leader did, or as the last of the processes that continued the
    /// attempt and failed, as far as that is known.
    pub(crate) fn final_status(&self) -> Option<WaitStatus> {
        self.failed_status.or(self.status)
    }

    /// Lets the remaining processes continue the attempt: they are no longer leftovers.
    pub(crate) fn detach(&mut self) {
        self.detached = true;
    }

    /// The resources used by the processes that have ended.
    pub(crate) const fn usage(&self) -> Usage {
        self.usage
    }

    /// How many processes outlived the leader and were signalled.
    pub(crate) fn left_behind(&self) -> u32 {
        u32::try_from(self.left_behind.len()).unwrap_or(u32::MAX)
    }

    /// Reaps ended processes; true when none is left.
    pub(crate) fn reap(&mut self) -> bool {
        match self.mode {
            ShimMode::Process => self.reap_any(),
            ShimMode::Thread => self.reap_leader(),
        }
    }

    fn reap_any(&mut self) -> bool {
        loop {
            let waited = wait::reap(-1);
            match (waited, &mut self.jail) {
                (ReapOutcome::Reaped(reaped), _) => self.on_reaped(&reaped),
                (ReapOutcome::Running, None) => return false,
                (ReapOutcome::NoChildren, None) => return true,
                (ReapOutcome::Running | ReapOutcome::NoChildren, Some(jail)) => {
                    return self.status.is_some() && jail.has_exited();
                }
            }
        }
    }

    fn on_reaped(&mut self, reaped: &wait::Reaped) {
        let jail = self.jail.as_mut();
        if jail.is_some_and(|jail| jail.is_helper(reaped.pid)) {
            return;
        }
        wait::add_usage(&mut self.usage, reaped.usage);
        let keep_orphans = self.status.is_some() && self.orphan_policy() == OrphanPolicy::Keep;
        if keep_orphans && is_failure(reaped.status) {
            self.failed_status = Some(reaped.status);
        }
        if reaped.pid == self.pid {
            self.status = Some(reaped.status);
            if let Some(jail) = &mut self.jail {
                jail.on_leader_exit();
            }
        }
    }

    /// On a thread, only children of our own are reaped.
    fn reap_leader(&mut self) -> bool {
        if self.status.is_none() {
            match wait::reap(self.pid) {
                ReapOutcome::Running => return false,
                ReapOutcome::NoChildren => return true,
                ReapOutcome::Reaped(reaped) => self.on_reaped(&reaped),
            }
        }
        match &mut self.jail {
            Some(jail) => jail.has_exited(),
            None => !self.set_sentinel(),
        }
    }

    /// Picks a remaining process to watch; false when none is left.
    fn set_sentinel(&mut self) -> bool {
        self.sentinel = None;
        loop {
            let mut members = self.members();
            if members.is_empty() {
                // A process that forks and exits while the list of processes is read hides its
                // child from it.
                members = self.members();
            }
            if members.is_empty() {
                return false;
            }
            let open = |pid: i32| pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok();
            self.sentinel = members.into_iter().find_map(open);
            if self.sentinel.is_some() {
                return true;
            }
        }
    }

    /// All live processes, including the leader. Under a subreaper these are all descendants; on a
    /// thread, the processes that carry the marker or are in the leader's group. Processes in a
    /// jail descend from its leader or its init, which is no member.
    pub(crate) fn members(&self) -> Vec<i32> {
        let alive = |pid: &i32| proc::stat(*pid).is_some_and(|stat| stat.is_alive());
        let pids = match (self.mode, &self.jail) {
            (ShimMode::Thread, None) => return proc::members(&self.marker, Some(self.pid)),
            (ShimMode::Thread, Some(jail)) => {
                let mut pids = jail.member_pids();
                if self.status.is_none() {
                    pids.push(self.pid);
                    pids.extend(proc::descendants(self.pid));
                }
                pids
            }
            (ShimMode::Process, _) => {
                let own = i32::try_from(std::process::id()).unwrap_or(0);
                proc::descendants(own)
            }
        };
        let helpers = self.jail.as_ref().map(RunningJail::helper_pids);
        let helpers = helpers.unwrap_or_default();
        pids.into_iter()
            .filter(|pid| !helpers.contains(pid))
            .filter(alive)
            .collect()
    }

    /// Sends a signal to the leader's process group; where that is gone and others continue the
    /// attempt, to them.
    pub(crate) fn signal_group(&self, signal: i32) {
        // An unreaped leader keeps its pid, and so its group's number, from being reused.
        if self.status.is_none() {
            let _gone = signals::kill(-self.pid, signal);
            return;
        }
        let in_group = |pid: &i32| proc::stat(*pid).is_some_and(|stat| stat.group == self.pid);
        let (group, others): (Vec<i32>, Vec<i32>) = self.members().into_iter().partition(in_group);
        let targets = if group.is_empty() && self.detached {
            others
        } else {
            group
        };
        for pid in targets {
            let _gone = signals::kill(pid, signal);
        }
    }

    /// Sends SIGTERM to the group at once, then to processes that left it, and SIGCONT so that
    /// stopped ones handle it.
    pub(crate) fn terminate(&mut self) {
        let members = self.record_members();
        let at_once = self.status.is_none();
        if at_once {
            let _gone = signals::kill(-self.pid, libc::SIGTERM);
        }
        for pid in members {
            let in_group = proc::stat(pid).is_some_and(|stat| stat.group == self.pid);
            if !(at_once && in_group) {
                let _gone = signals::kill(pid, libc::SIGTERM);
            }
            let _gone = signals::kill(pid, libc::SIGCONT);
        }
    }

    /// Simulates the hang-up of a terminal: SIGHUP to the leader and the foreground group, as the
    /// kernel sends it when a terminal goes away, SIGTERM to all others, and SIGCONT so that
    /// stopped ones handle it.
    pub(crate) fn hang_up(&mut self, foreground: Option<i32>) {
        let leader = self.pid;
        let reached = |group: i32| group == leader || Some(group) == foreground;
        for pid in self.record_members() {
            let group = proc::stat(pid).map(|stat| stat.group);
            let signal = if group.is_some_and(reached) {
                libc::SIGHUP
            } else {
                libc::SIGTERM
            };
            let _gone = signals::kill(pid, signal);
            let _gone = signals::kill(pid, libc::SIGCONT);
        }
    }

    /// Stops all processes by SIGSTOP, until no new one is found: for systems without a cgroup
    /// freezer.
    pub(crate) fn stop_all(&self) {
        let mut stopped = BTreeSet::new();
        for _ in 0..STOP_ROUNDS {
            let members = self.members();
            let fresh: Vec<i32> = members
                .into_iter()
                .filter(|pid| stopped.insert(*pid))
                .collect();
            if fresh.is_empty() {
                return;
            }
            for pid in fresh {
                let _gone = signals::kill(pid, libc::SIGSTOP);
            }
        }
    }

    /// The opposite of [`stop_all`](Self::stop_all).
    pub(crate) fn continue_all(&self) {
        for pid in self.members() {
            let _gone = signals::kill(pid, libc::SIGCONT);
        }
    }

    /// Kills all processes: the group at once, then every other one found.
    pub(crate) fn kill(&mut self) {
        let members = self.record_members();
        if self.status.is_none() {
            let _gone = signals::kill(-self.pid, libc::SIGKILL);
        }
        for pid in members {
            let _gone = signals::kill(pid, libc::SIGKILL);
        }
        // No process survives the init of its pid namespace.
        if let Some(jail) = &self.jail {
            jail.kill();
        }
    }

    fn record_members(&mut self) -> Vec<i32> {
        let members = self.members();
        if self.status.is_some() && !self.detached {
            self.left_behind.extend(&members);
        }
        members
    }
}

/// Whether a status is a failure.
fn is_failure(status: WaitStatus) -> bool {
    status != WaitStatus::Code(0)
}

impl Drop for ProcessTree {
    /// A leader that could not be killed keeps its jail from ending, and waiting for the jail would
    /// block for ever. It is killed and left to the process that inherits it.
    fn drop(&mut self) {
        if self.status.is_none()
            && let Some(jail) = self.jail.take()
        {
            jail.kill();
            std::mem::forget(jail);
        }
    }
}
