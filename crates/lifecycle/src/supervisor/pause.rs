//! Pausing, and limits that are reached while the execution runs.

use ostler_model::ControlCommand;
use ostler_model::{Event, LimitKind, Principal, Timestamp};

use super::effect::SupervisorEffect;
use super::state_machine::Supervisor;

impl Supervisor {
    /// A tree that must end is no longer frozen: its stop would wait for nothing.
    pub(super) fn on_freeze(&mut self, frozen: bool) {
        let is_stopping = self.state.stopping.is_some();
        if self.is_live() && self.state.paused != frozen && !(frozen && is_stopping) {
            self.effects
                .push(SupervisorEffect::Send(ControlCommand::Freeze(frozen)));
        }
    }

    /// Records a change of the frozen state once, however often it is reported, and only while the
    /// execution runs.
    pub(super) fn on_frozen(&mut self, now: Timestamp, frozen: bool, by: Principal) {
        if !self.is_live() || self.state.paused == frozen || self.is_attempt_end_recorded() {
            return;
        }
        self.record_if_created(
            now,
            if frozen {
                Event::Paused { by }
            } else {
                Event::Resumed { by }
            },
        );
    }

    /// Whether the end of the newest attempt is on record.
    fn is_attempt_end_recorded(&self) -> bool {
        let ended_attempt = self.ended_attempt.as_ref();
        ended_attempt.is_some_and(|(attempt, _)| *attempt == self.attempt)
    }

    /// Records each limit once, over all attempts.
    pub(super) fn on_limit_hit(&mut self, now: Timestamp, limit: LimitKind) {
        if !self.state.limits_hit.contains(&limit) {
            self.record_if_created(now, Event::LimitHit { limit });
        }
    }
}
