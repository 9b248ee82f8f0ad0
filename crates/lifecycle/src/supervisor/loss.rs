//! Attempts whose end nobody saw: their shim is gone, or the engine was.

use std::time::Duration;

use ostler_model::KillReason;
use ostler_model::{Event, LostReason, Termination, TerminationCause, Timestamp, duration};

use super::state_machine::{AttemptStage, RestartCause, Supervisor};

impl Supervisor {
    pub(super) fn on_shim_gone(&mut self, now: Timestamp) {
        if self.has_attempt() {
            self.lose_attempt(now, LostReason::ShimKilled);
        }
    }

    pub(super) fn on_lost(&mut self, now: Timestamp, reason: LostReason, attempt: u32) {
        if self.stage != AttemptStage::Idle || self.state.events == 0 {
            return;
        }
        self.attempt = self.attempt.max(attempt);
        // What was recorded before the engine was killed is still known.
        let recorded = self
            .ended_attempt
            .take()
            .filter(|(of, _)| *of == self.attempt);
        let Some((
            _,
            Event::Exited {
                status,
                out_of_memory,
                ..
            },
        )) = recorded
        else {
            self.tries = self.tries.max(1);
            return self.lose_attempt(now, reason);
        };
        self.tries = self.tries.max(1);
        let ladder = self.state.stopping.as_ref().map(|_| KillReason::Requested);
        self.after_exit(now, status, ladder, out_of_memory, Duration::ZERO);
    }

    /// The attempt's exit status is unknown. A service begins again as after any failure, where
    /// only its shim or its container is gone: not after a reboot, and not without its files.
    pub(super) fn lose_attempt(&mut self, now: Timestamp, reason: LostReason) {
        let restart = self.pending_restart.take();
        // Nobody knows better when it ended.
        let lived = self
            .state
            .attempt_started_at
            .map(|at| duration::between(at, now));
        self.reset_tries_after(lived.unwrap_or_default());
        let only_shim_lost = match reason {
            LostReason::ShimKilled | LostReason::NoRecord | LostReason::ContainerGone => true,
            LostReason::Reboot | LostReason::FilesDamaged | LostReason::EngineKilled => false,
        };
        if matches!(restart, Some((_, RestartCause::Requested))) {
            self.tries = 0;
        }
        if only_shim_lost && self.state.stopping.is_none() && self.may_restart(false) {
            return self.back_off(now, Some(reason));
        }
        self.finish_lost(now, reason);
    }

    fn finish_lost(&mut self, now: Timestamp, reason: LostReason) {
        self.finish(
            now,
            Termination::without_status(TerminationCause::Lost { reason }),
        );
    }
}
