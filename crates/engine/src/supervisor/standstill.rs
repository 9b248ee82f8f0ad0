//! Pauses, and limits reached while it runs.

use ostler_model::{Event, Limit, Principal, Timestamp};
use ostler_process::Order;

use super::decide::Supervisor;
use super::effect::Effect;

impl Supervisor {
    /// A tree that must end is not frozen any more: its stop would wait for nothing.
    pub(super) fn freeze(&mut self, frozen: bool) {
        let ending = self.state.stopping.is_some();
        if self.is_live() && self.state.paused != frozen && !(frozen && ending) {
            self.effects.push(Effect::Send(Order::Freeze(frozen)));
        }
    }

    /// Told once, however often it is said; and only of what runs.
    pub(super) fn frozen(&mut self, now: Timestamp, frozen: bool, by: Principal) {
        if !self.is_live() || self.state.paused == frozen || self.has_ended() {
            return;
        }
        self.note(
            now,
            if frozen {
                Event::Paused { by }
            } else {
                Event::Resumed { by }
            },
        );
    }

    /// Whether the end of the newest attempt is on record.
    fn has_ended(&self) -> bool {
        let ended = self.ended.as_ref();
        ended.is_some_and(|(attempt, _)| *attempt == self.attempt)
    }

    /// Each limit once, over all attempts.
    pub(super) fn limit_hit(&mut self, now: Timestamp, limit: Limit) {
        if !self.state.limits_hit.contains(&limit) {
            self.note(now, Event::LimitHit { limit });
        }
    }
}
