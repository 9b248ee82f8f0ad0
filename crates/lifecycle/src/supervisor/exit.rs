//! What follows from an exit record: another attempt, or the end.

use std::time::Duration;

use ostler_model::event::{DegradedCapability, TrimReason};
use ostler_model::termination::WaitStatus;
use ostler_model::{
    AutorunReport, Event, Lifetime, LimitKind, LostReason, RestartPolicy, StopReason, Timestamp,
};
use ostler_model::{ExitRecord, KillReason, LeaderOutcome};

use super::effect::{SupervisorEffect, Timer};
use super::state_machine::{AttemptStage, RestartCause, Supervisor};
use super::termination::{self, ExitEvidence};

/// The backoff before the second attempt of a service, in milliseconds; doubled for each further
/// one.
pub const BACKOFF_FIRST_MS: u64 = 500;
/// The longest backoff, in milliseconds.
pub const BACKOFF_MAX_MS: u64 = 30_000;
/// An attempt that ran this long, in milliseconds, resets a service's restart count.
pub const RESTART_STABLE_MS: u64 = 60_000;
/// The number of doublings after which the backoff no longer grows.
pub const MAX_TRIES_SHIFT: u32 = 6;

impl Supervisor {
    pub(super) fn on_exited(&mut self, now: Timestamp, record: &ExitRecord) {
        if self.stage == AttemptStage::Idle && self.state.events > 0 {
            self.attempt = self.attempt.max(record.attempt);
            self.tries = self.tries.max(1);
            self.stage = AttemptStage::Live { grace: None };
            if let Some(failure) = self.spawn_failure.take_if(|it| it.attempt > record.attempt) {
                // Later attempts could not be spawned, and left no record.
                self.offset = self.offset.max(record.output_end);
                return self.after_spawn_failed(now, failure);
            }
        }
        if !self.has_attempt() || record.attempt != self.attempt {
            return;
        }
        self.offset = self.offset.max(record.output_end);
        if !self.is_exit_known(record) {
            self.record_losses(record);
        }
        match &record.outcome {
            LeaderOutcome::SpawnFailed {
                step,
                errno,
                message,
            } => self.on_spawn_failed(now, step.clone(), *errno, message.clone()),
            LeaderOutcome::ContainerLost => {
                self.on_started(record.started_at, record.pid);
                self.lose_attempt(record.ended_at, LostReason::ContainerGone);
            }
            LeaderOutcome::Ended {
                status,
                kill_reason: ladder,
            } => {
                self.on_started(record.started_at, record.pid);
                if let (Some(KillReason::Timeout(clock)), None) = (ladder, &self.state.stopping) {
                    let order = StopReason::TimedOut { clock: *clock };
                    self.record(record.ended_at, Event::Stopping { order });
                }
                self.record_exit(record, *status);
                self.after_exit(
                    record.ended_at,
                    *status,
                    *ladder,
                    record.out_of_memory,
                    self.attempt_duration(record),
                );
            }
        }
    }

    fn record_losses(&mut self, record: &ExitRecord) {
        if let Some(detail) = &record.journal_error {
            self.on_journal_failed(record.ended_at, detail.clone());
        }
        if record.lost_bytes > 0 {
            let detail = format!(
                "{} bytes of output could not be kept on disk",
                record.lost_bytes
            );
            let ability = DegradedCapability::Journal;
            self.record_if_created(record.ended_at, Event::Degraded { ability, detail });
        }
        // Gaps between two periods in which the disk accepted output are on record already, unless
        // no engine was running then.
        let lost = record.lost_bytes.saturating_sub(self.lost_bytes);
        if lost > 0 {
            let trimmed = Event::Trimmed {
                from: record.output_end.saturating_sub(lost),
                to: record.output_end,
                reason: TrimReason::DiskFull,
            };
            self.record_if_created(record.ended_at, trimmed);
        }
    }

    fn is_exit_known(&self, record: &ExitRecord) -> bool {
        let ended = self.ended_attempt.as_ref();
        ended.is_some_and(|(of, _)| *of == record.attempt)
    }

    fn record_exit(&mut self, record: &ExitRecord, status: WaitStatus) {
        if self.is_exit_known(record) {
            return;
        }
        let memory = record.out_of_memory.then_some(LimitKind::Memory);
        for limit in memory.into_iter().chain(record.limits_hit.iter().copied()) {
            self.on_limit_hit(record.ended_at, limit);
        }
        for lost in &record.lost_capabilities {
            self.on_capability_lost(record.ended_at, lost.clone());
        }
        if !record.autorun.is_empty() {
            let report = AutorunReport::clone(&record.autorun);
            self.record_if_created(record.ended_at, Event::Autorun { report });
        }
        self.record(
            record.ended_at,
            Event::Exited {
                attempt: record.attempt,
                status,
                leftovers: record.leftovers,
                out_of_memory: record.out_of_memory,
                usage: record.usage,
            },
        );
    }

    fn attempt_duration(&self, record: &ExitRecord) -> Duration {
        // The wall clock may have been set meanwhile.
        if record.lived_ms > 0 {
            return Duration::from_millis(record.lived_ms);
        }
        let lived = record.ended_at.duration_since(record.started_at);
        Duration::try_from(lived).unwrap_or_default()
    }

    pub(super) fn after_exit(
        &mut self,
        at: Timestamp,
        status: WaitStatus,
        ladder: Option<KillReason>,
        out_of_memory: bool,
        lived: Duration,
    ) {
        let restart = self
            .pending_restart
            .take()
            .filter(|_| self.state.stopping.is_none());
        if matches!(restart, Some((_, RestartCause::Requested))) {
            self.tries = 0;
            return self.spawn();
        }
        let termination = termination::termination_of(ExitEvidence {
            status,
            // An attempt that was ended for being unhealthy has failed, whoever sent the signal.
            ladder: ladder.filter(|_| restart.is_none()),
            out_of_memory,
            stop: self.state.stopping.as_ref(),
            service: matches!(self.lifetime, Lifetime::Service { .. }),
        });
        self.reset_tries_after(lived);
        let success = termination.is_success() && restart.is_none();
        if self.state.stopping.is_none() && self.may_restart(success) {
            return self.back_off(at, None);
        }
        self.finish(at, termination);
    }

    /// An attempt that lived long enough begins a new count.
    pub(super) fn reset_tries_after(&mut self, lived: Duration) {
        if lived >= Duration::from_millis(RESTART_STABLE_MS) {
            self.tries = 1;
        }
    }

    pub(super) fn may_restart(&self, success: bool) -> bool {
        match self.lifetime {
            Lifetime::Finite { .. }
            | Lifetime::Service {
                restart: RestartPolicy::Never,
                ..
            } => false,
            Lifetime::Service {
                restart: RestartPolicy::OnFailure { max },
                ..
            } => !success && self.tries <= max,
            Lifetime::Service {
                restart: RestartPolicy::Always { max },
                ..
            } => self.tries <= max,
        }
    }

    /// `now` is when the attempt ended, by the shim's clock; `lost` says why its exit status is
    /// unknown.
    pub(super) fn back_off(&mut self, now: Timestamp, lost: Option<LostReason>) {
        let doublings = self.tries.saturating_sub(1).min(MAX_TRIES_SHIFT);
        let wait = (BACKOFF_FIRST_MS << doublings).min(BACKOFF_MAX_MS);
        let until = now + Duration::from_millis(wait);
        self.stage = AttemptStage::Backoff;
        let attempt = self.attempt + 1;
        let backoff = Event::Backoff {
            attempt,
            until,
            lost,
            tries: Some(self.tries),
        };
        self.record(now, backoff);
        self.effects.push(SupervisorEffect::SetTimer {
            timer: Timer::Backoff,
            after: Duration::from_millis(wait),
        });
    }
}
