//! What is peculiar to services: on the way to ready, well or ill, once more.

use std::time::Duration;

use ostler_model::ending::WaitStatus;
use ostler_model::{Event, Principal, Timestamp};

use super::decide::{Again, Stage, Supervisor};
use super::effect::{Effect, Timer};
use crate::readiness::{Found, Readiness, Seen, Wants};

impl Supervisor {
    /// What is to be looked at, this long after the attempt's start; nothing of what is not a
    /// service, does not run, or must end.
    #[must_use]
    pub fn wants(&self, elapsed: Duration) -> Wants {
        let readiness = self.readiness.as_ref().filter(|_| self.is_watched());
        readiness.map_or_else(Wants::default, |it| it.wants(elapsed))
    }

    /// What a service waits for on its way to ready, as one clause; none of what is ready.
    #[must_use]
    pub fn waits_for(&self) -> Option<String> {
        let on_its_way = self.is_watched() && self.state.stage < Some(ostler_model::Stage::Running);
        let readiness = self.readiness.as_ref().filter(|_| on_its_way);
        readiness.map(Readiness::waits_for)
    }

    fn is_watched(&self) -> bool {
        self.is_live() && self.state.stopping.is_none() && self.again.is_none()
    }

    /// Of an attempt that begins now.
    pub(super) fn begin_readiness(&mut self) {
        let plan = self.lifetime.plan();
        self.readiness = plan.map(|plan| Readiness::new(&plan.ready, plan.health.as_ref()));
    }

    /// Of one that an earlier engine began, with what it saw of it.
    pub(super) fn resume_readiness(&mut self) {
        let ready = self.state.stage >= Some(ostler_model::Stage::Running);
        self.readiness = self.lifetime.plan().map(|plan| {
            Readiness::resume(&plan.ready, plan.health.as_ref(), ready)
                .remember(&self.state.ports, self.state.url.as_deref())
        });
    }

    pub(super) fn seen(&mut self, now: Timestamp, elapsed: Duration, seen: Seen) {
        if !self.is_watched() {
            return;
        }
        let Some(readiness) = &mut self.readiness else {
            return;
        };
        for found in readiness.handle(elapsed, now, seen) {
            self.found(now, found);
        }
    }

    fn found(&mut self, now: Timestamp, found: Found) {
        let attempt = self.attempt;
        match found {
            Found::Ports { ports, url } => {
                if self.state.ports != ports || self.state.url != url {
                    self.note(
                        now,
                        Event::Ports {
                            attempt,
                            ports,
                            url,
                        },
                    );
                }
            }
            Found::Stage { stage, sign } => {
                if self.state.stage < Some(stage) {
                    self.note(
                        now,
                        Event::Stage {
                            attempt,
                            stage,
                            sign,
                        },
                    );
                }
            }
            Found::Ready {
                evidence,
                signs,
                unprobed,
                warnings,
            } => self.note(
                now,
                Event::Ready {
                    attempt,
                    evidence,
                    signs,
                    unprobed,
                    warnings,
                },
            ),
            Found::Ill { detail, restart } => self.ill(now, detail, restart),
            Found::Well { detail } => {
                if self.state.healthy == Some(false) {
                    self.note(now, Event::Health { ok: true, detail });
                }
            }
        }
    }

    fn ill(&mut self, now: Timestamp, detail: String, restart: bool) {
        if self.state.healthy != Some(false) {
            let detail = detail.clone();
            self.note(now, Event::Health { ok: false, detail });
        }
        if restart && self.is_watched() {
            self.restarting(now, None, detail);
            self.end_attempt();
        }
    }

    fn restarting(&mut self, now: Timestamp, by: Option<Principal>, reason: String) {
        let attempt = self.attempt;
        self.note(
            now,
            Event::Restarting {
                attempt,
                by,
                reason,
            },
        );
    }

    /// What is being born, ends anyway or is finite is left alone.
    pub(super) fn restart(&mut self, now: Timestamp, (by, reason): (Principal, String)) {
        if self.lifetime.plan().is_none() || self.state.stopping.is_some() {
            return;
        }
        match self.stage {
            Stage::Live { grace: None } => {
                self.restarting(now, Some(by), reason);
                self.end_attempt();
            }
            Stage::Live { grace: Some(_) } => {
                // On its way for being ill: now it is asked for, too.
                self.again = self.again.map(|(attempt, _)| (attempt, Again::Asked));
            }
            Stage::Waiting => {
                self.restarting(now, Some(by), reason);
                self.effects.push(Effect::ClearTimer(Timer::Backoff));
                self.tries = 0;
                self.spawn();
            }
            Stage::Idle | Stage::Spawning { .. } | Stage::Over => {}
        }
    }

    pub(super) fn detached(&mut self, now: Timestamp, status: WaitStatus) {
        let service = self.lifetime.plan().is_some();
        if service && self.is_live() && !self.state.detached {
            let attempt = self.attempt;
            self.note(now, Event::Detached { attempt, status });
        }
    }
}
