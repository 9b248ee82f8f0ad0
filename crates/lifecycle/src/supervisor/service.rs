//! Supervision that only services have: readiness, health, restarts.

use std::time::Duration;

use ostler_model::termination::WaitStatus;
use ostler_model::{Event, Principal, ServicePort, Timestamp};

use super::effect::{SupervisorEffect, Timer};
use super::forwarded_url;
use super::state_machine::{AttemptStage, RestartCause, Supervisor};
use crate::readiness::{Readiness, ReadinessEvent, ReadinessInput, WatchPlan};

impl Supervisor {
    /// What to observe, this long after the attempt's start; empty for an execution that is not a
    /// service, does not run, or must end.
    #[must_use]
    pub fn watch_plan(&self, elapsed: Duration) -> WatchPlan {
        let readiness = self.readiness.as_ref().filter(|_| self.is_watched());
        readiness.map_or_else(WatchPlan::default, |it| it.watch_plan(elapsed))
    }

    /// The condition that a service still waits for before it is ready, as one clause; none once it
    /// is ready.
    #[must_use]
    pub fn waiting_for(&self) -> Option<String> {
        let is_not_ready =
            self.is_watched() && self.state.stage < Some(ostler_model::ServiceStage::Running);
        let readiness = self.readiness.as_ref().filter(|_| is_not_ready);
        readiness.map(Readiness::waits_for)
    }

    fn is_watched(&self) -> bool {
        self.is_live() && self.state.stopping.is_none() && self.pending_restart.is_none()
    }

    /// Begins the readiness of a new attempt.
    pub(super) fn begin_readiness(&mut self) {
        let plan = self.lifetime.plan();
        self.readiness = plan.map(|plan| Readiness::new(&plan.ready, plan.health.as_ref()));
    }

    /// Restores the readiness of an attempt that an earlier engine began, from its events.
    pub(super) fn resume_readiness(&mut self) {
        let ready = self.state.stage >= Some(ostler_model::ServiceStage::Running);
        let url = self.state.url.clone().map(|url| {
            let forwards = self.forwards.as_deref().unwrap_or_default();
            forwarded_url::to_service(&url, forwards).unwrap_or(url)
        });
        self.readiness = self.lifetime.plan().map(|plan| {
            Readiness::resume(&plan.ready, plan.health.as_ref(), ready)
                .with_published(&self.state.ports, url.as_deref())
        });
    }

    /// The URL as the host reaches it, of one in the service's network.
    fn host_url(&self, url: Option<String>, ports: &[ServicePort]) -> Option<String> {
        match &self.forwards {
            None => url,
            Some(forwards) => {
                let main = ports.iter().find(|it| it.main)?;
                forwarded_url::to_host(&url?, main.address.port(), forwards)
            }
        }
    }

    pub(super) fn on_observation(
        &mut self,
        now: Timestamp,
        elapsed: Duration,
        seen: ReadinessInput,
    ) {
        if !self.is_watched() {
            return;
        }
        let Some(readiness) = &mut self.readiness else {
            return;
        };
        for found in readiness.handle(elapsed, now, seen) {
            self.on_readiness_event(now, found);
        }
    }

    fn on_readiness_event(&mut self, now: Timestamp, found: ReadinessEvent) {
        let attempt = self.attempt;
        match found {
            ReadinessEvent::Ports { ports, url } => {
                let url = self.host_url(url, &ports);
                if self.state.ports != ports || self.state.url != url {
                    self.record_if_created(
                        now,
                        Event::Ports {
                            attempt,
                            ports,
                            url,
                        },
                    );
                }
            }
            ReadinessEvent::Stage {
                stage,
                signal: sign,
            } => {
                if self.state.stage < Some(stage) {
                    self.record_if_created(
                        now,
                        Event::Stage {
                            attempt,
                            stage,
                            sign,
                        },
                    );
                }
            }
            ReadinessEvent::Ready {
                evidence,
                signals: signs,
                unprobed,
                warnings,
            } => self.record_if_created(
                now,
                Event::Ready {
                    attempt,
                    evidence,
                    signs,
                    unprobed,
                    warnings,
                },
            ),
            ReadinessEvent::Unhealthy { detail, restart } => {
                self.on_unhealthy(now, detail, restart);
            }
            ReadinessEvent::Healthy { detail } => {
                if self.state.healthy == Some(false) {
                    self.record_if_created(now, Event::Health { ok: true, detail });
                }
            }
        }
    }

    fn on_unhealthy(&mut self, now: Timestamp, detail: String, restart: bool) {
        if self.state.healthy != Some(false) {
            let detail = detail.clone();
            self.record_if_created(now, Event::Health { ok: false, detail });
        }
        if restart && self.is_watched() {
            self.record_restarting(now, None, detail);
            self.end_attempt();
        }
    }

    fn record_restarting(&mut self, now: Timestamp, by: Option<Principal>, reason: String) {
        let attempt = self.attempt;
        self.record_if_created(
            now,
            Event::Restarting {
                attempt,
                by,
                reason,
            },
        );
    }

    /// An attempt that is being spawned, is ending or is finite is left alone.
    pub(super) fn on_restart(&mut self, now: Timestamp, by: Principal, reason: String) {
        if self.lifetime.plan().is_none() || self.state.stopping.is_some() {
            return;
        }
        match self.stage {
            AttemptStage::Live { grace: None } => {
                self.record_restarting(now, Some(by), reason);
                self.end_attempt();
            }
            AttemptStage::Live { grace: Some(_) } => {
                // The attempt is being ended for being unhealthy: now the restart is also
                // requested.
                self.pending_restart = self
                    .pending_restart
                    .map(|(attempt, _)| (attempt, RestartCause::Requested));
            }
            AttemptStage::Backoff => {
                self.record_restarting(now, Some(by), reason);
                self.effects
                    .push(SupervisorEffect::ClearTimer(Timer::Backoff));
                self.tries = 0;
                self.spawn();
            }
            AttemptStage::Idle | AttemptStage::Spawning { .. } | AttemptStage::Ended => {}
        }
    }

    pub(super) fn on_detached(&mut self, now: Timestamp, status: WaitStatus) {
        let service = self.lifetime.plan().is_some();
        if service && self.is_live() && !self.state.detached {
            let attempt = self.attempt;
            self.record_if_created(now, Event::Detached { attempt, status });
        }
    }
}
