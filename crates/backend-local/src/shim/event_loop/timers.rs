//! The timers of an attempt: when the next one is due, and what is done then.

use std::time::Instant;

use ostler_backend::{KillReason, ProcessEvent};
use ostler_model::TimeoutKind;
use rustix::event::Timespec;

use super::{AttemptRunner, LoopAction};

impl AttemptRunner<'_> {
    /// How long a poll may wait: until the next timer is due; without one, none.
    pub(super) fn timeout(&self) -> Option<Timespec> {
        let timeouts = if self.are_timeouts_running() {
            [self.wall_at, self.idle_at]
        } else {
            [None, None]
        };
        let others = [
            self.escalation.deadline(),
            self.streams.deadline(),
            self.notifier.deadline(),
            self.listen_at,
            self.reserve_at,
            self.report_at,
        ];
        let next = timeouts.into_iter().chain(others).flatten().min()?;
        let left = next.saturating_duration_since(Instant::now());
        Some(Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(left.subsec_nanos()),
        })
    }

    /// Whether the deadlines of the plan run: not while the tree is frozen or is being ended.
    fn are_timeouts_running(&self) -> bool {
        self.escalation.is_running() && self.freeze_state.is_none()
    }

    /// Handles every timer that is due.
    pub(super) fn on_timers(&mut self, now: Instant) -> LoopAction {
        if self.report_at.is_some_and(|at| now >= at) {
            self.send_started();
        }
        if self.are_timeouts_running() {
            self.check_timeouts(now);
        }
        if self.streams.deadline().is_some_and(|at| now >= at) {
            self.streams.flush(Some(now), &mut self.sink);
            self.send_sink_events();
            self.notify_output();
        }
        if self.notifier.deadline().is_some_and(|at| now >= at) {
            self.notify_output();
        }
        if self.ended.is_some() && self.streams.are_closed() {
            self.escalation.on_output_closed(now);
        }
        if self.listen_at.is_some_and(|at| now >= at) {
            self.open_control_socket();
        }
        self.reserve_if_due(now);
        match self.escalation.poll(now) {
            Some(action) => self.apply(action),
            None => LoopAction::Continue,
        }
    }

    fn check_timeouts(&mut self, now: Instant) {
        let timeouts = [
            (TimeoutKind::Wall, self.wall_at),
            (TimeoutKind::Idle, self.idle_at),
        ];
        let expired = timeouts
            .into_iter()
            .find(|(_, at)| at.is_some_and(|at| now >= at));
        if let Some((kind, _)) = expired {
            self.send_started();
            self.daemon.send(&ProcessEvent::TimedOut { kind }, None);
            self.terminate(KillReason::Timeout(kind), self.plan.timeouts.grace);
        }
    }
}
