//! A frozen tree: its timeouts are suspended, and it is thawed before it is killed.

use std::time::{Duration, Instant};

use ostler_backend::ProcessEvent;
use ostler_sandbox::cgroup::FreezeOutcome;

use super::AttemptRunner;

/// When a tree was frozen, and by which mechanism.
#[derive(Debug, Clone, Copy)]
pub(super) struct FreezeState {
    since: Instant,
    /// By SIGSTOP to each process, where there is no cgroup freezer.
    by_signals: bool,
}

impl AttemptRunner<'_> {
    /// Freezes or thaws as requested, and reports the resulting state.
    pub(super) fn freeze(&mut self, frozen: bool) {
        if frozen && self.freeze_state.is_none() && self.escalation.is_running() {
            self.freeze_tree();
        } else if !frozen {
            self.thaw();
        }
        self.send_frozen();
    }

    pub(super) fn send_frozen(&mut self) {
        let frozen = self.freeze_state.is_some();
        self.daemon.send(&ProcessEvent::Frozen { frozen }, None);
    }

    fn freeze_tree(&mut self) {
        let by_freezer = self
            .shim
            .slot
            .as_ref()
            .filter(|_| self.tree.container().is_none())
            .map_or(FreezeOutcome::Unsupported, |slot| slot.freeze(true));
        let by_signals = match by_freezer {
            FreezeOutcome::Done => false,
            FreezeOutcome::TimedOut => return,
            FreezeOutcome::Unsupported => {
                self.tree.stop_all();
                true
            }
        };
        self.freeze_state = Some(FreezeState {
            since: Instant::now(),
            by_signals,
        });
    }

    /// Thaws the tree; its timeouts continue where they were suspended.
    pub(super) fn thaw(&mut self) {
        let Some(freeze_state) = self.freeze_state.take() else {
            return;
        };
        if freeze_state.by_signals {
            self.tree.continue_all();
        } else if let Some(slot) = &self.shim.slot {
            let _nobody_left = slot.freeze(false);
        }
        let frozen_for = freeze_state.since.elapsed();
        self.wall_at = postponed(self.wall_at, frozen_for);
        self.idle_at = postponed(self.idle_at, frozen_for);
    }

    /// Thaws a tree that is about to be signalled, since frozen processes do not handle signals.
    pub(super) fn thaw_for_exit(&mut self) {
        if self.freeze_state.is_some() {
            self.thaw();
            self.send_frozen();
        }
    }
}

fn postponed(at: Option<Instant>, by: Duration) -> Option<Instant> {
    at.and_then(|at| at.checked_add(by))
}
