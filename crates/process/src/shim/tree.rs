//! The processes of one execution: who they are, and how they are asked and made to end.

use std::collections::BTreeSet;
use std::os::fd::OwnedFd;

use ostler_model::ending::WaitStatus;
use ostler_model::{ExecutionId, Usage};

use super::serve::Mode;
use crate::sys::wait::{self, Waited};
use crate::sys::{proc, signals};

/// The variable that marks every process of an execution.
pub(crate) const EXECUTION_VARIABLE: &str = "OSTLER_EXECUTION";

/// `OSTLER_EXECUTION=<id>`.
pub(crate) fn marker(id: ExecutionId) -> Vec<u8> {
    format!("{EXECUTION_VARIABLE}={id}").into_bytes()
}

/// A leader and everything under it.
#[derive(Debug)]
pub(crate) struct Tree {
    mode: Mode,
    marker: Vec<u8>,
    pid: i32,
    pidfd: OwnedFd,
    status: Option<WaitStatus>,
    usage: Usage,
    left_behind: BTreeSet<i32>,
}

impl Tree {
    /// The tree of a leader that was just born.
    pub(crate) fn new(mode: Mode, id: ExecutionId, born: crate::sys::clone::Born) -> Self {
        Self {
            mode,
            marker: marker(id),
            pid: born.pid,
            pidfd: born.pidfd,
            status: None,
            usage: Usage::default(),
            left_behind: BTreeSet::new(),
        }
    }

    /// The leader's pid.
    pub(crate) fn pid(&self) -> u32 {
        self.pid.unsigned_abs()
    }

    /// Readable when the leader has ended.
    pub(crate) const fn pidfd(&self) -> &OwnedFd {
        &self.pidfd
    }

    /// How the leader ended, once it has.
    pub(crate) const fn status(&self) -> Option<WaitStatus> {
        self.status
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
        let target = match self.mode {
            Mode::Process => -1,
            Mode::Thread if self.status.is_some() => return self.members().is_empty(),
            Mode::Thread => self.pid,
        };
        loop {
            match wait::reap(target) {
                Waited::Living => return false,
                Waited::None => return true,
                Waited::Reaped(reaped) => {
                    wait::add(&mut self.usage, reaped.usage);
                    if reaped.pid == self.pid {
                        self.status = Some(reaped.status);
                        if self.mode == Mode::Thread {
                            return self.members().is_empty();
                        }
                    }
                }
            }
        }
    }

    /// Everybody who lives, the leader too. Under a subreaper that is every descendant,
    /// whatever it did; on a thread, whoever carries the marker or is in the leader's group.
    pub(crate) fn members(&self) -> Vec<i32> {
        match self.mode {
            Mode::Process => {
                let own = i32::try_from(std::process::id()).unwrap_or(0);
                let alive = |pid: &i32| proc::stat(*pid).is_some_and(|stat| stat.is_alive());
                proc::descendants(own).into_iter().filter(alive).collect()
            }
            Mode::Thread => proc::members(&self.marker, Some(self.pid)),
        }
    }

    /// Sends a signal to the leader's process group.
    pub(crate) fn signal_group(&self, signal: i32) {
        // An unreaped leader keeps its pid, and so its group's number, from being reused.
        if self.status.is_none() {
            let _gone = signals::kill(-self.pid, signal);
            return;
        }
        let in_group = |pid: &i32| proc::stat(*pid).is_some_and(|stat| stat.group == self.pid);
        for pid in self.members().into_iter().filter(in_group) {
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

    /// Kills everybody: the group at once, then one by one whoever is found.
    pub(crate) fn kill(&mut self) {
        let members = self.noted_members();
        if self.status.is_none() {
            let _gone = signals::kill(-self.pid, libc::SIGKILL);
        }
        for pid in members {
            let _gone = signals::kill(pid, libc::SIGKILL);
        }
    }

    fn noted_members(&mut self) -> Vec<i32> {
        let members = self.members();
        if self.status.is_some() {
            self.left_behind.extend(&members);
        }
        members
    }
}
