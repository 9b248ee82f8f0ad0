//! A supervisor from the events that an earlier engine recorded.

use std::time::Duration;

use ostler_model::event::{DegradedCapability, TrimReason};
use ostler_model::{Event, EventRecord, Lifetime, TerminationCause};

use super::state_machine::{AttemptStage, RestartCause, SpawnFailure, Supervisor};

impl SpawnFailure {
    /// What such an event says; none for others.
    fn of(event: &Event) -> Option<Self> {
        let Event::SpawnFailed {
            attempt,
            step,
            errno,
            message,
        } = event
        else {
            return None;
        };
        let cause = TerminationCause::SpawnFailed {
            step: step.clone(),
            errno: *errno,
            message: message.clone(),
        };
        Some(Self {
            attempt: *attempt,
            cause,
        })
    }
}

impl Supervisor {
    /// A supervisor of an execution that an earlier engine began, from its events. Its first input
    /// is the result of recovery.
    #[must_use]
    pub fn resume(lifetime: Lifetime, grace: Duration, records: &[EventRecord]) -> Self {
        let mut supervisor = Self::new(lifetime, grace);
        for record in records {
            supervisor.replay_tries(&record.event);
            supervisor.replay(record);
            supervisor.state.apply(record);
        }
        if supervisor.state.is_finished() {
            supervisor.stage = AttemptStage::Ended;
        }
        supervisor
    }

    /// The limit on restarts holds across engines.
    fn replay_tries(&mut self, event: &Event) {
        if let Event::Started { attempt, .. } | Event::SpawnFailed { attempt, .. } = event
            && *attempt > self.attempt
        {
            self.tries += 1;
        }
        if let Event::Backoff { attempt, tries, .. } = event {
            self.tries = tries.unwrap_or(attempt.saturating_sub(1));
        }
        if let Event::Restarting { by: Some(_), .. } = event {
            self.tries = 0;
        }
    }

    pub(super) fn replay(&mut self, record: &EventRecord) {
        self.last_at = self.last_at.max(record.at);
        self.offset = self.offset.max(record.offset);
        match &record.event {
            Event::Started { attempt, .. } => {
                // The start of the attempt to be ended may be reported late.
                self.pending_restart = self.pending_restart.filter(|(ended, _)| ended >= attempt);
                self.lost_capabilities.clear();
                self.started_attempt = *attempt;
                self.attempt = self.attempt.max(*attempt);
                self.spawn_failure = None;
            }
            Event::SpawnFailed { attempt, .. } => {
                self.attempt = self.attempt.max(*attempt);
                self.spawn_failure = SpawnFailure::of(&record.event);
            }
            Event::Exited { attempt, .. } => {
                self.lost_bytes = 0;
                self.ended_attempt = Some((*attempt, record.event.clone()));
            }
            Event::Backoff { .. } => {
                self.lost_bytes = 0;
                self.pending_restart = None;
            }
            Event::Restarting { attempt, by, .. } => {
                let cause = if by.is_some() {
                    RestartCause::Requested
                } else {
                    RestartCause::Unhealthy
                };
                self.pending_restart = Some((*attempt, cause));
            }
            Event::Degraded {
                ability: DegradedCapability::Journal,
                ..
            } => self.journal_failed = true,
            Event::Degraded {
                ability: DegradedCapability::Enforcement(lost),
                ..
            } => self.lost_capabilities.push(*lost),
            Event::Trimmed {
                from,
                to,
                reason: TrimReason::DiskFull,
            } => self.lost_bytes += to.saturating_sub(*from),
            Event::PromptDetected { .. } => self.prompt_offset = Some(record.offset),
            Event::PromptAnswered { .. } | Event::PromptGone {} | Event::Input { .. } => {
                self.prompt_offset = None;
            }
            Event::Created { .. }
            | Event::Refused { .. }
            | Event::Interaction { .. }
            | Event::Context { .. }
            | Event::Requested { .. }
            | Event::Alert { .. }
            | Event::Ports { .. }
            | Event::Stage { .. }
            | Event::Detached { .. }
            | Event::Ready { .. }
            | Event::Health { .. }
            | Event::Resized { .. }
            | Event::Paused { .. }
            | Event::Resumed { .. }
            | Event::LeaseTaken { .. }
            | Event::Sampled { .. }
            | Event::LimitHit { .. }
            | Event::Autorun { .. }
            | Event::Workspace { .. }
            | Event::Stopping { .. }
            | Event::Adopted { .. }
            | Event::Trimmed { .. }
            | Event::Finished { .. } => {}
        }
    }
}
