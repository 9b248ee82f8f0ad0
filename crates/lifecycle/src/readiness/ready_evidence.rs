//! What makes a service ready: the evidence, by the condition of its rule.

use std::time::Duration;

use ostler_model::{ReadyCondition, ServiceKind, SignalKind};

use super::limits::{ALIVE, COMPILE_QUIET, HOLD_BACK, LOG_GRACE, PATIENT_ALIVE, WATCHER_QUIET};
use super::main_port::{MainPortReason, is_debug_port};
use super::messages::describe_listener;
use super::output::{NotedLine, OutputEvidence};
use super::printed_address::{AddressWeight, PrintedAddress};
use super::probe_state::ProbeSuccess;
use super::scan_schedule::ms;
use super::state_machine::{MainPort, Readiness, ReadinessPhase};

/// The evidence for ready.
pub(super) struct ReadyEvidence {
    pub(super) kind: SignalKind,
    pub(super) detail: String,
    pub(super) unprobed: bool,
}

impl ReadyEvidence {
    fn new(kind: SignalKind, detail: String) -> Self {
        Self {
            kind,
            detail,
            unprobed: false,
        }
    }
}

impl Readiness {
    /// Whether it is ready now, and by what evidence.
    pub(super) fn ready_evidence(
        &mut self,
        main: Option<&MainPort>,
        success: Option<ProbeSuccess>,
    ) -> Option<ReadyEvidence> {
        let settled = main.filter(|it| it.settled <= self.at);
        match self.rule.when.clone() {
            ReadyCondition::Auto => match success {
                Some(success) => self.await_ready_line(success),
                None => self.ready_without_port(main),
            },
            ReadyCondition::Listening
                if main.is_none() && self.rule.kind != ServiceKind::Server =>
            {
                self.unix_listening()
            }
            ReadyCondition::Listening => settled
                .map(|it| ReadyEvidence::new(SignalKind::Socket, describe_listener(&it.socket))),
            ReadyCondition::Responding | ReadyCondition::Exec { .. } => {
                success.map(|it| ReadyEvidence::new(it.kind, it.detail))
            }
            ReadyCondition::Http { .. } | ReadyCondition::Tcp { .. } => {
                let success = success?;
                if self.probe.is_outside() {
                    self.warn(
                        "no process of this service listens on the port that answered".to_owned(),
                    );
                }
                Some(ReadyEvidence::new(success.kind, success.detail))
            }
            ReadyCondition::Log => self.ready_by_line(main),
            ReadyCondition::Notify => self.notify_state.ready.then(|| {
                let status = self
                    .notify_state
                    .status
                    .as_deref()
                    .map_or_else(String::new, |it| format!(" ({it})"));
                ReadyEvidence::new(SignalKind::Notify, format!("it said READY=1{status}"))
            }),
            ReadyCondition::Quiet { ms: quiet } => {
                let since = self.output.evidence().output_at.unwrap_or_default();
                let due = since + ms(quiet) <= self.at && self.may_probe_outside();
                due.then(|| {
                    ReadyEvidence::new(
                        SignalKind::Quiet,
                        format!("it printed nothing for {quiet} ms"),
                    )
                })
            }
        }
    }

    /// A port that responds long before it can work waits for its ready line too.
    fn await_ready_line(&mut self, success: ProbeSuccess) -> Option<ReadyEvidence> {
        let evidence = self.output.evidence();
        let line = evidence.ready.as_ref().map(|it| it.line.clone());
        if self.rule.listens_before_ready && evidence.has_ready() {
            if let Some(line) = line {
                self.record_signal(SignalKind::Log, line);
            } else if self.responded.unwrap_or(self.at) + HOLD_BACK <= self.at {
                self.warn(format!(
                    "its ready line did not come within {} s",
                    HOLD_BACK.as_secs()
                ));
            } else {
                return None;
            }
        }
        Some(ReadyEvidence::new(success.kind, success.detail))
    }

    /// Readiness without a port, by kind.
    fn ready_without_port(&mut self, main: Option<&MainPort>) -> Option<ReadyEvidence> {
        match self.rule.kind {
            ServiceKind::Server => None,
            ServiceKind::Socket => self
                .unix_listening()
                .or_else(|| self.alive_for(PATIENT_ALIVE)),
            ServiceKind::Watcher => self.watcher_idle(),
            ServiceKind::Multi => match main {
                Some(_) => None,
                None => self.ready_line().or_else(|| self.alive_for(PATIENT_ALIVE)),
            },
            ServiceKind::Unknown => {
                if main.is_some_and(|it| it.reason != MainPortReason::Debug) || self.promises_port()
                {
                    return None;
                }
                if self.rule.compiles && self.quiet_since() + COMPILE_QUIET > self.at {
                    return self.unix_listening();
                }
                let alive = self.alive_for(ALIVE)?;
                self.unix_listening().or(Some(alive))
            }
        }
    }

    /// Whether an unknown service will listen, by its command or its output.
    pub(super) fn promises_port(&self) -> bool {
        let evidence = self.output.evidence();
        let announces_port = |it: &&PrintedAddress| {
            it.weight <= AddressWeight::Phrase && it.is_local() && !is_debug_port(it.port)
        };
        let announced = evidence.addresses.iter().any(|it| announces_port(&it));
        self.rule.requested_port.is_some()
            || (announced && self.at < evidence.first_address_at + HOLD_BACK)
    }

    fn unix_listening(&self) -> Option<ReadyEvidence> {
        let path = self.listeners.unix().next()?;
        let detail = format!("unix {path} listens");
        self.failure
            .is_none()
            .then(|| ReadyEvidence::new(SignalKind::Socket, detail))
    }

    fn ready_line(&self) -> Option<ReadyEvidence> {
        let line = self.output.evidence().ready.as_ref()?;
        Some(ReadyEvidence::new(SignalKind::Log, line.line.clone()))
    }

    fn watcher_idle(&self) -> Option<ReadyEvidence> {
        let evidence = self.output.evidence();
        if let Some(line) = evidence
            .ready
            .as_ref()
            .or_else(|| idle_line(evidence, self.at))
        {
            return Some(ReadyEvidence::new(SignalKind::Log, line.line.clone()));
        }
        let quiet = evidence.output_at.unwrap_or_default() + WATCHER_QUIET <= self.at;
        if quiet && !evidence.has_ready() {
            return self.alive_for(ALIVE);
        }
        self.alive_for(PATIENT_ALIVE)
    }

    /// Ready by having been alive long enough since its start, or its watcher's restart.
    fn alive_for(&self, long: Duration) -> Option<ReadyEvidence> {
        let evidence = self.output.evidence();
        let has_errors = evidence.in_use.is_some() || evidence.suspect.is_some();
        let since = match (&self.failure, evidence.restarted_at) {
            (None, restarted_at) => restarted_at.unwrap_or_default(),
            (Some(_), Some(restarted_at)) => restarted_at,
            (Some(_), None) => return None,
        };
        if self.phase == ReadinessPhase::Running || has_errors || since + long > self.at {
            return None;
        }
        Some(ReadyEvidence {
            kind: SignalKind::Alive,
            detail: format!("alive for {} s, with nothing to look at", long.as_secs()),
            unprobed: true,
        })
    }

    /// Ready by its line, and for a server by a port too: many print it before they listen.
    fn ready_by_line(&mut self, main: Option<&MainPort>) -> Option<ReadyEvidence> {
        let evidence = self.output.evidence();
        let line = evidence.ready.clone()?;
        let late = line.at + LOG_GRACE <= self.at && self.failure.is_none();
        if self.rule.kind == ServiceKind::Server && main.is_none_or(|it| it.settled > self.at) {
            if !late {
                return None;
            }
            self.warn("its line came, but no port of it listens".to_owned());
        }
        Some(ReadyEvidence::new(SignalKind::Log, line.line))
    }
}

/// The line of an idle watcher; a rule with its own expression is given time to match.
fn idle_line(evidence: &OutputEvidence, at: Duration) -> Option<&NotedLine> {
    let patient = if evidence.has_ready() {
        PATIENT_ALIVE
    } else {
        Duration::ZERO
    };
    evidence.idle.as_ref().filter(|it| it.at + patient <= at)
}
