//! The processes of one execution: who they are, and how they are asked and made to end.

use std::collections::BTreeSet;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use ostler_model::ending::WaitStatus;
use ostler_model::{AutorunReport, ExecutionId, Leftovers, Usage};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::confined::Confined;
use super::serve::Mode;
use crate::proto::WirePlan;
use crate::sys::clone;
use crate::sys::wait::{self, Waited};
use crate::sys::{proc, signals};

/// The variable that marks every process of an execution.
pub(crate) const EXECUTION_VARIABLE: &str = "OSTLER_EXECUTION";

/// Rounds in which those are looked for that were born while others were stopped.
const STOP_ROUNDS: usize = 32;

/// `OSTLER_EXECUTION=<id>`.
pub(crate) fn marker(id: ExecutionId) -> Vec<u8> {
    format!("{EXECUTION_VARIABLE}={id}").into_bytes()
}

/// What is known of a tree before it is born.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Upbringing {
    pub(crate) mode: Mode,
    pub(crate) id: ExecutionId,
    pub(crate) leftovers: Leftovers,
}

impl Upbringing {
    pub(crate) fn of(mode: Mode, plan: &WirePlan) -> Self {
        Self {
            mode,
            id: plan.id,
            leftovers: plan.leftovers,
        }
    }
}

/// A leader and everything under it.
#[derive(Debug)]
pub(crate) struct Tree {
    mode: Mode,
    marker: Vec<u8>,
    leftovers: Leftovers,
    pid: i32,
    pidfd: OwnedFd,
    status: Option<WaitStatus>,
    /// How the last of those ended badly that the leader left behind to be kept.
    bad_end: Option<WaitStatus>,
    /// They go on in its place.
    detached: bool,
    /// One of those that outlived the leader, on a thread: its end wakes us to look for the
    /// others.
    sentinel: Option<OwnedFd>,
    usage: Usage,
    left_behind: BTreeSet<i32>,
    /// What is around it, at level high.
    around: Option<Confined>,
}

impl Tree {
    /// The tree of a leader that was just born.
    pub(crate) fn new(upbringing: Upbringing, born: clone::Born, around: Option<Confined>) -> Self {
        Self {
            mode: upbringing.mode,
            marker: marker(upbringing.id),
            leftovers: upbringing.leftovers,
            bad_end: None,
            detached: false,
            sentinel: None,
            pid: born.pid,
            pidfd: born.pidfd,
            status: None,
            usage: Usage::default(),
            left_behind: BTreeSet::new(),
            around,
        }
    }

    /// The leader's pid.
    pub(crate) fn pid(&self) -> u32 {
        self.pid.unsigned_abs()
    }

    /// Readable when the leader has ended; after that, when the cell around it has, or on a
    /// thread one of those that it left behind.
    pub(crate) fn watched(&self) -> Option<BorrowedFd<'_>> {
        if self.status.is_none() {
            return Some(self.pidfd.as_fd());
        }
        match &self.around {
            Some(around) => around.pidfd(),
            None => self.sentinel.as_ref().map(AsFd::as_fd),
        }
    }

    /// Whether it lives in a cell.
    pub(crate) const fn is_confined(&self) -> bool {
        self.around.is_some()
    }

    /// What it left in its workspace that is run or obeyed unasked.
    pub(crate) fn autorun(&self) -> AutorunReport {
        let around = self.around.as_ref();
        around.map_or_else(AutorunReport::default, Confined::autorun)
    }

    /// How the leader ended, once it has.
    pub(crate) const fn status(&self) -> Option<WaitStatus> {
        self.status
    }

    /// What is kept of what the leader left behind: nothing where it failed.
    pub(crate) fn leftovers(&self) -> Leftovers {
        match self.status {
            Some(status) if is_bad(status) => Leftovers::Kill,
            Some(_) | None => self.leftovers,
        }
    }

    /// How the tree ended: as its leader did, or as the last of those that went on in its place
    /// and failed, as far as that can be known.
    pub(crate) fn end(&self) -> Option<WaitStatus> {
        self.bad_end.or(self.status)
    }

    /// What the leader left behind goes on in its place: it is no leftover any more.
    pub(crate) fn detach(&mut self) {
        self.detached = true;
    }

    /// What the tree used, as far as it has ended.
    pub(crate) const fn usage(&self) -> Usage {
        self.usage
    }

    /// Processes that outlived the leader and were signalled.
    pub(crate) fn left_behind(&self) -> u32 {
        u32::try_from(self.left_behind.len()).unwrap_or(u32::MAX)
    }

    /// Reaps whoever has ended; whether nobody is left.
    pub(crate) fn reap(&mut self) -> bool {
        match self.mode {
            Mode::Process => self.reap_every(),
            Mode::Thread => self.reap_own(),
        }
    }

    fn reap_every(&mut self) -> bool {
        loop {
            let found = wait::reap(-1);
            match (found, &mut self.around) {
                (Waited::Reaped(reaped), _) => self.bury(&reaped),
                (Waited::Living, None) => return false,
                (Waited::None, None) => return true,
                (Waited::Living | Waited::None, Some(around)) => {
                    return self.status.is_some() && around.is_gone();
                }
            }
        }
    }

    fn bury(&mut self, reaped: &wait::Reaped) {
        let around = self.around.as_mut();
        if around.is_some_and(|around| around.is_helper(reaped.pid)) {
            return;
        }
        wait::add(&mut self.usage, reaped.usage);
        let kept = self.status.is_some() && self.leftovers() == Leftovers::Keep;
        if kept && is_bad(reaped.status) {
            self.bad_end = Some(reaped.status);
        }
        if reaped.pid == self.pid {
            self.status = Some(reaped.status);
            if let Some(around) = &mut self.around {
                around.leader_ended();
            }
        }
    }

    /// On a thread, only children of our own are reaped.
    fn reap_own(&mut self) -> bool {
        if self.status.is_none() {
            match wait::reap(self.pid) {
                Waited::Living => return false,
                Waited::None => return true,
                Waited::Reaped(reaped) => self.bury(&reaped),
            }
        }
        match &mut self.around {
            Some(around) => around.is_gone(),
            None => !self.set_sentinel(),
        }
    }

    /// Finds one who is left to watch; false when nobody is.
    fn set_sentinel(&mut self) -> bool {
        self.sentinel = None;
        loop {
            let mut members = self.members();
            if members.is_empty() {
                // Who forks and ends while the list of processes is read hides its child from it.
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

    /// Everybody who lives, the leader too. Under a subreaper that is every descendant,
    /// whatever it did; on a thread, whoever carries the marker or is in the leader's group.
    /// Whoever is in a cell descends from its leader or its warden, which is no member.
    pub(crate) fn members(&self) -> Vec<i32> {
        let alive = |pid: &i32| proc::stat(*pid).is_some_and(|stat| stat.is_alive());
        let found = match (self.mode, &self.around) {
            (Mode::Thread, None) => return proc::members(&self.marker, Some(self.pid)),
            (Mode::Thread, Some(around)) => {
                let mut found = around.inhabitants();
                if self.status.is_none() {
                    found.push(self.pid);
                    found.extend(proc::descendants(self.pid));
                }
                found
            }
            (Mode::Process, _) => {
                let own = i32::try_from(std::process::id()).unwrap_or(0);
                proc::descendants(own)
            }
        };
        let helpers = self.around.as_ref().map(Confined::companions);
        let helpers = helpers.unwrap_or_default();
        found
            .into_iter()
            .filter(|pid| !helpers.contains(pid))
            .filter(alive)
            .collect()
    }

    /// Sends a signal to the leader's process group; where that is gone and others went on, to
    /// them.
    pub(crate) fn signal_group(&self, signal: i32) {
        // An unreaped leader keeps its pid, and so its group's number, from being reused.
        if self.status.is_none() {
            let _gone = signals::kill(-self.pid, signal);
            return;
        }
        let in_group = |pid: &i32| proc::stat(*pid).is_some_and(|stat| stat.group == self.pid);
        let (group, others): (Vec<i32>, Vec<i32>) = self.members().into_iter().partition(in_group);
        let meant = if group.is_empty() && self.detached {
            others
        } else {
            group
        };
        for pid in meant {
            let _gone = signals::kill(pid, signal);
        }
    }

    /// Asks everybody to end: TERM to the group at once, then to whoever left it; CONT so that
    /// the stopped hear it.
    pub(crate) fn ask(&mut self) {
        let members = self.noted_members();
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

    /// Hangs a terminal up: HUP to its leader and to whom it is in front of, as the kernel does
    /// when a terminal goes away, TERM to everybody else; CONT so that the stopped hear it.
    pub(crate) fn hang_up(&mut self, foreground: Option<i32>) {
        let leader = self.pid;
        let reached = |group: i32| group == leader || Some(group) == foreground;
        for pid in self.noted_members() {
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

    /// Stops everybody by SIGSTOP, until nobody new is found: where no freezer is.
    pub(crate) fn stand_still(&self) {
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

    /// The opposite of [`stand_still`](Self::stand_still).
    pub(crate) fn go_on(&self) {
        for pid in self.members() {
            let _gone = signals::kill(pid, libc::SIGCONT);
        }
    }

    /// Kills everybody: the group at once, then one by one whoever is found.
    pub(crate) fn kill(&mut self) {
        let members = self.noted_members();
        if self.status.is_none() {
            let _gone = signals::kill(-self.pid, libc::SIGKILL);
        }
        for pid in members {
            let _gone = signals::kill(pid, libc::SIGKILL);
        }
        // Nobody survives the init of their pid namespace.
        if let Some(around) = &self.around {
            around.kill();
        }
    }

    fn noted_members(&mut self) -> Vec<i32> {
        let members = self.members();
        if self.status.is_some() && !self.detached {
            self.left_behind.extend(&members);
        }
        members
    }
}

/// Whether this is no success.
fn is_bad(status: WaitStatus) -> bool {
    status != WaitStatus::Code(0)
}

impl Drop for Tree {
    /// A leader that could not be ended keeps its cell from ending: who waited for the one would
    /// wait for ever. It is killed and left to whoever inherits it.
    fn drop(&mut self) {
        if self.status.is_none()
            && let Some(around) = self.around.take()
        {
            around.kill();
            std::mem::forget(around);
        }
    }
}
