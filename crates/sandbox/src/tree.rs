//! The processes of one execution: finding, signalling and reaping them. Used by shims for processes
//! of this machine and by the init of a container for those inside it, so that there is one way only.

use std::collections::BTreeSet;
use std::fmt;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use ostler_model::termination::WaitStatus;
use ostler_model::{ExecutionId, OrphanPolicy, Usage};
use ostler_sys::{proc, signals};
use rustix::process::{Pid, PidfdFlags, WaitId, WaitIdOptions, pidfd_open, waitid};

use crate::spawn::SpawnedChild;
use crate::spawn::wait::{self, ReapOutcome, Reaped};

/// The environment variable that marks every process of an execution.
pub const EXECUTION_VARIABLE: &str = "OSTLER_EXECUTION";

/// How many rounds [`ProcessTree::stop_all`] searches for processes that were started while others
/// were stopped.
const STOP_ROUNDS: usize = 32;

/// The environment entry `OSTLER_EXECUTION=<id>`.
#[must_use]
pub fn marker(id: ExecutionId) -> Vec<u8> {
    format!("{EXECUTION_VARIABLE}={id}").into_bytes()
}

/// Which processes the calling one adopts and may reap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TreeReaper {
    /// All orphaned descendants: it is a subreaper (prctl(2)) and has no other children.
    Subreaper,
    /// The leader alone: it has children that do not belong to the tree.
    ParentOfLeader,
}

/// What a tree is enclosed by, besides its process group.
pub trait Enclosure: fmt::Debug {
    /// Kills every process inside.
    fn kill(&self);

    /// Readable when it has ended; none once that is known.
    fn pidfd(&self) -> Option<BorrowedFd<'_>>;

    /// Whether no process is left inside.
    fn has_exited(&mut self) -> bool;

    /// Handles the end of the leader.
    fn on_leader_exit(&mut self);

    /// Its own processes, which are no members of the tree.
    fn helper_pids(&self) -> Vec<i32>;

    /// Handles the end of a process that was reaped; false if it is none of the helpers.
    fn on_helper_reaped(&mut self, reaped: &Reaped) -> bool;

    /// Members that are no descendants of the leader.
    fn member_pids(&self) -> Vec<i32>;
}

/// The enclosure of trees that have none.
#[derive(Debug, Clone, Copy)]
pub enum NoEnclosure {}

impl Enclosure for NoEnclosure {
    fn kill(&self) {
        match *self {}
    }

    fn pidfd(&self) -> Option<BorrowedFd<'_>> {
        match *self {}
    }

    fn has_exited(&mut self) -> bool {
        match *self {}
    }

    fn on_leader_exit(&mut self) {
        match *self {}
    }

    fn helper_pids(&self) -> Vec<i32> {
        match *self {}
    }

    fn on_helper_reaped(&mut self, _reaped: &Reaped) -> bool {
        match *self {}
    }

    fn member_pids(&self) -> Vec<i32> {
        match *self {}
    }
}

/// The configuration of a tree before it is spawned.
#[derive(Debug, Clone, Copy)]
pub struct TreeConfig {
    /// What the calling process reaps.
    pub reaper: TreeReaper,
    /// The execution.
    pub id: ExecutionId,
    /// What happens to processes that the leader leaves.
    pub orphan_policy: OrphanPolicy,
}

/// A leader and its descendants.
#[derive(Debug)]
pub struct ProcessTree<E: Enclosure = NoEnclosure> {
    reaper: TreeReaper,
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
    /// What encloses it.
    enclosure: Option<E>,
}

impl<E: Enclosure> ProcessTree<E> {
    /// The tree of a leader that was just spawned.
    pub fn new(config: TreeConfig, child: SpawnedChild, enclosure: Option<E>) -> Self {
        Self {
            reaper: config.reaper,
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
            enclosure,
        }
    }

    /// The leader's pid.
    pub fn pid(&self) -> u32 {
        self.pid.unsigned_abs()
    }

    /// Readable when the leader has ended; after that, when the enclosure has, or one of the remaining
    /// processes, where they are not adopted.
    pub fn exit_fd(&self) -> Option<BorrowedFd<'_>> {
        if self.status.is_none() {
            return Some(self.pidfd.as_fd());
        }
        match &self.enclosure {
            Some(enclosure) => enclosure.pidfd(),
            None => self.sentinel.as_ref().map(AsFd::as_fd),
        }
    }

    /// What encloses it.
    pub const fn enclosure(&self) -> Option<&E> {
        self.enclosure.as_ref()
    }

    /// As [`enclosure`](Self::enclosure).
    pub const fn enclosure_mut(&mut self) -> Option<&mut E> {
        self.enclosure.as_mut()
    }

    /// The leader's status, once it has ended.
    pub const fn status(&self) -> Option<WaitStatus> {
        self.status
    }

    /// What happens to remaining processes: they are not kept where the leader failed.
    pub fn orphan_policy(&self) -> OrphanPolicy {
        match self.status {
            Some(status) if is_failure(status) => OrphanPolicy::Kill,
            Some(_) | None => self.orphan_policy,
        }
    }

    /// How the tree ended: as its leader did, or as the last of the processes that continued the
    /// attempt and failed, as far as that is known.
    pub fn final_status(&self) -> Option<WaitStatus> {
        self.failed_status.or(self.status)
    }

    /// The status of the last process kept after the leader that failed.
    pub const fn failed_status(&self) -> Option<WaitStatus> {
        self.failed_status
    }

    /// Lets the remaining processes continue the attempt: they are no longer leftovers.
    pub fn detach(&mut self) {
        self.detached = true;
    }

    /// The resources used by the processes that have ended.
    pub const fn usage(&self) -> Usage {
        self.usage
    }

    /// How many processes outlived the leader and were signalled.
    pub fn left_behind(&self) -> u32 {
        u32::try_from(self.left_behind.len()).unwrap_or(u32::MAX)
    }

    /// Reaps ended processes; true when none is left.
    pub fn reap(&mut self) -> bool {
        match self.reaper {
            TreeReaper::Subreaper => self.reap_any(),
            TreeReaper::ParentOfLeader => self.reap_leader(),
        }
    }

    fn reap_any(&mut self) -> bool {
        loop {
            let waited = wait::reap(-1);
            match (waited, &mut self.enclosure) {
                (ReapOutcome::Reaped(reaped), _) => self.on_reaped(&reaped),
                (ReapOutcome::Running, None) => return false,
                (ReapOutcome::NoChildren, None) => return true,
                (ReapOutcome::Running | ReapOutcome::NoChildren, Some(enclosure)) => {
                    return self.status.is_some() && enclosure.has_exited();
                }
            }
        }
    }

    fn on_reaped(&mut self, reaped: &Reaped) {
        let enclosure = self.enclosure.as_mut();
        if enclosure.is_some_and(|enclosure| enclosure.on_helper_reaped(reaped)) {
            return;
        }
        wait::add_usage(&mut self.usage, reaped.usage);
        let keep_orphans = self.status.is_some() && self.orphan_policy() == OrphanPolicy::Keep;
        if keep_orphans && is_failure(reaped.status) {
            self.failed_status = Some(reaped.status);
        }
        if reaped.pid == self.pid {
            self.status = Some(reaped.status);
            if let Some(enclosure) = &mut self.enclosure {
                enclosure.on_leader_exit();
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
        match &mut self.enclosure {
            Some(enclosure) => enclosure.has_exited(),
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
    /// enclosure descend from the leader or are listed by it.
    pub fn members(&self) -> Vec<i32> {
        let alive = |pid: &i32| proc::stat(*pid).is_some_and(|stat| stat.is_alive());
        let pids = match (self.reaper, &self.enclosure) {
            (TreeReaper::ParentOfLeader, None) => {
                return proc::members(&self.marker, Some(self.pid));
            }
            (TreeReaper::ParentOfLeader, Some(enclosure)) => {
                let mut pids = enclosure.member_pids();
                if self.status.is_none() {
                    pids.push(self.pid);
                    pids.extend(proc::descendants(self.pid));
                }
                pids
            }
            (TreeReaper::Subreaper, _) => {
                let own = i32::try_from(std::process::id()).unwrap_or(0);
                proc::descendants(own)
            }
        };
        let helpers = self.enclosure.as_ref().map(E::helper_pids);
        let helpers = helpers.unwrap_or_default();
        pids.into_iter()
            .filter(|pid| !helpers.contains(pid))
            .filter(alive)
            .collect()
    }

    /// Sends a signal to the leader's process group; where that is gone and others continue the
    /// attempt, to them.
    pub fn signal_group(&self, signal: i32) {
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
    pub fn terminate(&mut self) {
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
    pub fn hang_up(&mut self, foreground: Option<i32>) {
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
    pub fn stop_all(&self) {
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
    pub fn continue_all(&self) {
        for pid in self.members() {
            let _gone = signals::kill(pid, libc::SIGCONT);
        }
    }

    /// Continues the process group of a leader that has stopped itself, as editors do at Ctrl-Z where
    /// there is no shell that would continue them; not where the stop was requested.
    pub fn continue_stopped(&self, is_requested: bool) {
        if self.status.is_some() {
            return;
        }
        let Some(leader) = Pid::from_raw(self.pid) else {
            return;
        };
        let options = WaitIdOptions::STOPPED | WaitIdOptions::NOHANG;
        let Ok(Some(stopped)) = waitid(WaitId::Pid(leader), options) else {
            return;
        };
        if stopped
            .stopping_signal()
            .is_some_and(|signal| is_continued(signal, is_requested))
        {
            self.signal_group(libc::SIGCONT);
        }
    }

    /// Kills all processes: the group at once, then every other one found.
    pub fn kill(&mut self) {
        let members = self.record_members();
        if self.status.is_none() {
            let _gone = signals::kill(-self.pid, libc::SIGKILL);
        }
        for pid in members {
            let _gone = signals::kill(pid, libc::SIGKILL);
        }
        // No process survives the init of its pid namespace.
        if let Some(enclosure) = &self.enclosure {
            enclosure.kill();
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

/// Whether a leader stopped by this signal is continued. SIGTTIN and SIGTTOU mean that it may not
/// use its terminal now, and would stop it again at once; a stop by request lasts until a request
/// continues it.
const fn is_continued(signal: i32, is_requested: bool) -> bool {
    !is_requested && !matches!(signal, libc::SIGTTIN | libc::SIGTTOU)
}

/// Whether a status is a failure.
#[must_use]
pub fn is_failure(status: WaitStatus) -> bool {
    status != WaitStatus::Code(0)
}

impl<E: Enclosure> Drop for ProcessTree<E> {
    /// A leader that could not be killed keeps its enclosure from ending, and waiting for that would
    /// block for ever. It is killed and left to the process that inherits it.
    fn drop(&mut self) {
        if self.status.is_none()
            && let Some(enclosure) = self.enclosure.take()
        {
            enclosure.kill();
            std::mem::forget(enclosure);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_stops_itself_goes_on_and_what_was_ordered_stays() {
        assert!(is_continued(libc::SIGTSTP, false));
        assert!(is_continued(libc::SIGSTOP, false));
        assert!(!is_continued(libc::SIGSTOP, true));
        assert!(!is_continued(libc::SIGTTIN, false));
        assert!(!is_continued(libc::SIGTTOU, false));
    }
}
