//! The tree of an attempt, here or in a container: the event loop does not know which.

use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use ostler_model::termination::WaitStatus;
use ostler_model::{AutorunReport, MissingCapability, OrphanPolicy, Usage};
use ostler_sandbox::tree::ProcessTree;
use ostler_sys::proc;

use super::container_tree::ContainerTree;
use super::jailed::RunningJail;

/// How long it is waited until stopped processes stand, in milliseconds; usually it takes
/// microseconds. One in an uninterruptible sleep stops when that ends.
const STOP_WAIT_MS: u64 = 200;

/// A leader and its descendants.
#[derive(Debug)]
pub(crate) enum AttemptTree {
    /// Processes of this machine, which descend from this one.
    Local(ProcessTree<RunningJail>),
    /// Processes in a container, which descend from its runner.
    Container(ContainerTree),
}

impl AttemptTree {
    /// The leader's pid on this machine; 0 where that is not known.
    pub(crate) fn pid(&self) -> u32 {
        match self {
            Self::Local(tree) => tree.pid(),
            Self::Container(tree) => tree.pid(),
        }
    }

    /// Readable when something may have ended.
    pub(crate) fn exit_fd(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Self::Local(tree) => tree.exit_fd(),
            Self::Container(tree) => tree.exit_fd(),
        }
    }

    /// Whether it runs in a jail.
    pub(crate) const fn is_jailed(&self) -> bool {
        match self {
            Self::Local(tree) => tree.enclosure().is_some(),
            Self::Container(_) => false,
        }
    }

    /// The container's tree, where it runs in one.
    pub(crate) const fn container(&self) -> Option<&ContainerTree> {
        match self {
            Self::Local(_) => None,
            Self::Container(tree) => Some(tree),
        }
    }

    /// What its isolation has lost since the last call.
    pub(crate) fn take_lost(&mut self) -> Option<MissingCapability> {
        match self {
            Self::Local(tree) => tree.enclosure_mut().and_then(RunningJail::take_lost),
            Self::Container(_) => None,
        }
    }

    /// Files in its workspace that run automatically and that it created or changed.
    pub(crate) fn autorun(&self) -> AutorunReport {
        match self {
            Self::Local(tree) => tree
                .enclosure()
                .map_or_else(AutorunReport::default, RunningJail::autorun),
            Self::Container(_) => AutorunReport::default(),
        }
    }

    /// The leader's status, once it has ended.
    pub(crate) fn status(&self) -> Option<WaitStatus> {
        match self {
            Self::Local(tree) => tree.status(),
            Self::Container(tree) => tree.status(),
        }
    }

    /// How the tree ended.
    pub(crate) fn final_status(&self) -> Option<WaitStatus> {
        match self {
            Self::Local(tree) => tree.final_status(),
            Self::Container(tree) => tree.final_status(),
        }
    }

    /// What happens to processes that the leader leaves.
    pub(crate) fn orphan_policy(&self) -> OrphanPolicy {
        match self {
            Self::Local(tree) => tree.orphan_policy(),
            Self::Container(tree) => tree.orphan_policy(),
        }
    }

    /// The resources used by the processes that have ended.
    pub(crate) fn usage(&self) -> Usage {
        match self {
            Self::Local(tree) => tree.usage(),
            Self::Container(tree) => tree.usage(),
        }
    }

    /// How many processes outlived the leader and were signalled.
    pub(crate) fn left_behind(&self) -> u32 {
        match self {
            Self::Local(tree) => tree.left_behind(),
            Self::Container(tree) => tree.left_behind(),
        }
    }

    /// All live processes, by their pids on this machine.
    pub(crate) fn members(&self) -> Vec<i32> {
        match self {
            Self::Local(tree) => tree.members(),
            Self::Container(tree) => tree.members(),
        }
    }

    /// Reaps what has ended; true when no process is left.
    pub(crate) fn reap(&mut self) -> bool {
        match self {
            Self::Local(tree) => tree.reap(),
            Self::Container(tree) => tree.reap(),
        }
    }

    /// Continues a leader that has stopped itself. A runner does that by itself.
    pub(crate) fn continue_stopped(&self, is_requested: bool) {
        match self {
            Self::Local(tree) => tree.continue_stopped(is_requested),
            Self::Container(_) => {}
        }
    }

    /// Lets the remaining processes continue the attempt.
    pub(crate) fn detach(&mut self) {
        match self {
            Self::Local(tree) => tree.detach(),
            Self::Container(tree) => tree.detach(),
        }
    }

    /// Sends a signal to the leader's process group.
    pub(crate) fn signal_group(&self, signal: i32) {
        match self {
            Self::Local(tree) => tree.signal_group(signal),
            Self::Container(tree) => tree.signal_group(signal),
        }
    }

    /// Sends SIGTERM to every process.
    pub(crate) fn terminate(&mut self) {
        match self {
            Self::Local(tree) => tree.terminate(),
            Self::Container(tree) => tree.terminate(),
        }
    }

    /// Sends what processes of a terminal are sent when it goes away.
    pub(crate) fn hang_up(&mut self, foreground: Option<i32>) {
        match self {
            Self::Local(tree) => tree.hang_up(foreground),
            Self::Container(tree) => tree.hang_up(),
        }
    }

    /// Stops all processes by SIGSTOP, and waits until they stand: a signal only takes effect when
    /// its process would run, and a runner is asked to send it.
    pub(crate) fn stop_all(&self) {
        match self {
            Self::Local(tree) => tree.stop_all(),
            Self::Container(tree) => tree.stop_all(),
        }
        let deadline = Instant::now() + Duration::from_millis(STOP_WAIT_MS);
        let stands = || self.members().into_iter().all(proc::has_stopped);
        // No notification says so: they are not all children of this process.
        while !stands() && Instant::now() < deadline {
            std::thread::yield_now();
        }
    }

    /// The opposite of [`stop_all`](Self::stop_all).
    pub(crate) fn continue_all(&self) {
        match self {
            Self::Local(tree) => tree.continue_all(),
            Self::Container(tree) => tree.continue_all(),
        }
    }

    /// Kills all processes.
    pub(crate) fn kill(&mut self) {
        match self {
            Self::Local(tree) => tree.kill(),
            Self::Container(tree) => tree.kill(),
        }
    }
}
