//! The startup phase: from spawn to ready, or to a startup failure.

use std::time::Duration;

use ostler_model::{ReadyCondition, ServiceKind, ServiceStage, SignalKind};

use super::event::ReadinessEvent;
use super::limits::{
    ALIVE, COMPILE_QUIET, HOLD_BACK, IN_USE, LOG_GRACE, MULTI_SETTLE, PATIENT_ALIVE, SUSPECT,
    WATCHER_QUIET,
};
use super::main_port::{MainPortReason, is_debug_port};
use super::messages::describe_listener;
use super::probe_state::ProbeSuccess;
use super::ready_evidence::ReadyEvidence;
use super::scan_schedule::ms;
use super::state_machine::{MainPort, Readiness, ReadinessPhase, StartupFailure};

/// How many ports after a taken one programs try.
const NEXT_PORTS: u16 = 10;

impl Readiness {
    /// One step of the startup: failures first.
    pub(super) fn step_startup(&mut self, events: &mut Vec<ReadinessEvent>) {
        if let Some(detail) = self.take_failure() {
            self.record_failure(detail, events);
        }
        let main = self.main_port();
        if let Some(main) = &main {
            self.record_listening(main, events);
        }
        let spec = self.startup_probe(main.as_ref());
        self.probe.set_spec(spec, self.at);
        let scanned = self.listeners.scanned_at();
        let success = self.probe.confirmed_success(
            scanned,
            |inode| self.listeners.is_drained(inode),
            self.at,
        );
        if let Some(success) = &success {
            self.record_responding(main.as_ref(), success, events);
        }
        if let Some(ready) = self.ready_evidence(main.as_ref(), success) {
            self.become_ready(ready, main, events);
        }
    }

    /// The failure that the evidence shows now, if any.
    fn take_failure(&mut self) -> Option<String> {
        let usable = self
            .usable()
            .iter()
            .any(|it| !is_debug_port(it.socket.address.port()));
        let quiet = self.quiet_since();
        let at = self.at;
        let evidence = self.output.evidence_mut();
        if let Some(dead) = evidence.fatal.take() {
            return Some(dead.line);
        }
        if usable || self.failure.is_some() {
            // It continues, on another port or after the error; or the failure was published.
            evidence.in_use = None;
            evidence.suspect = None;
        }
        if evidence
            .in_use
            .as_ref()
            .is_some_and(|it| it.at + IN_USE <= at)
        {
            return evidence.in_use.take().map(|it| it.line);
        }
        let awaits_port = self.phase == ReadinessPhase::Startup && self.expects_port();
        let evidence = self.output.evidence_mut();
        let due = evidence
            .suspect
            .as_ref()
            .is_some_and(|it| it.at.max(quiet) + SUSPECT <= at);
        if awaits_port && due {
            evidence.suspect.take().map(|it| it.line)
        } else {
            None
        }
    }

    /// Whether a port must open, so that silence after an error means failure.
    pub(super) fn expects_port(&self) -> bool {
        match self.rule.when {
            ReadyCondition::Auto
            | ReadyCondition::Listening
            | ReadyCondition::Responding
            | ReadyCondition::Http { .. }
            | ReadyCondition::Tcp { .. } => true,
            ReadyCondition::Log
            | ReadyCondition::Exec { .. }
            | ReadyCondition::Notify
            | ReadyCondition::Quiet { .. } => self.rule.kind == ServiceKind::Server,
        }
    }

    /// Since when nothing was printed and the process count has not changed.
    pub(super) fn quiet_since(&self) -> Duration {
        self.output
            .evidence()
            .output_at
            .unwrap_or_default()
            .max(self.members_at)
    }

    fn record_failure(&mut self, detail: String, events: &mut Vec<ReadinessEvent>) {
        let is_known = self.failure.as_ref().is_some_and(|it| it.detail == detail);
        self.failure = Some(StartupFailure {
            inodes: self.listeners.inodes(),
            detail: detail.clone(),
        });
        self.phase = ReadinessPhase::Startup;
        self.stage = None;
        self.responded = None;
        self.signals.clear();
        self.warnings.clear();
        self.notify_state.ready = false;
        let evidence = self.output.evidence_mut();
        evidence.suspect = None;
        evidence.in_use = None;
        if !is_known {
            events.push(ReadinessEvent::Unhealthy {
                detail,
                restart: false,
            });
        }
    }

    fn record_listening(&mut self, main: &MainPort, events: &mut Vec<ReadinessEvent>) {
        let is_certain = main.reason != MainPortReason::Debug || main.settled <= self.at;
        if is_certain && self.stage.is_none() {
            self.stage = Some(ServiceStage::Listening);
            let signal = self.record_signal(SignalKind::Socket, describe_listener(&main.socket));
            events.push(ReadinessEvent::Stage {
                stage: ServiceStage::Listening,
                signal,
            });
        }
    }

    fn record_responding(
        &mut self,
        main: Option<&MainPort>,
        success: &ProbeSuccess,
        events: &mut Vec<ReadinessEvent>,
    ) {
        let is_probed = self.probes_main_port();
        if let Some(main) = main.filter(|_| is_probed || self.should_detect_protocol()) {
            self.record_protocol(main.socket.address.port(), success);
        }
        if !is_probed && self.should_detect_protocol() {
            return;
        }
        if let Some(status) = success.status.filter(|it| *it >= 500) {
            self.warn(format!("GET / answered {status}"));
        }
        let signal = self.record_signal(success.kind, success.detail.clone());
        let is_stage = matches!(
            self.rule.when,
            ReadyCondition::Auto | ReadyCondition::Responding
        );
        if is_stage && self.responded.is_none() {
            self.responded = Some(self.at);
            self.stage = Some(ServiceStage::Responding);
            events.push(ReadinessEvent::Stage {
                stage: ServiceStage::Responding,
                signal,
            });
        }
    }

    fn become_ready(
        &mut self,
        ready: ReadyEvidence,
        main: Option<MainPort>,
        events: &mut Vec<ReadinessEvent>,
    ) {
        let socket = main.as_ref().map(|it| describe_listener(&it.socket));
        let socket = socket.filter(|_| !ready.unprobed);
        if let Some(socket) = &socket {
            self.record_signal(SignalKind::Socket, socket.clone());
        }
        self.record_signal(ready.kind, ready.detail.clone());
        let evidence = self.output.evidence();
        let conflict = evidence.conflict.clone();
        if let Some(main) = main.as_ref().filter(|_| !ready.unprobed) {
            let port = main.socket.address.port();
            if let Some(requested) = self
                .rule
                .requested_port
                .filter(|requested| *requested != port)
            {
                self.warn(format!("asked for port {requested}, got {port}"));
            }
            let default_port = self
                .rule
                .default_port
                .filter(|_| self.rule.requested_port.is_none());
            if let Some(default_port) =
                default_port.filter(|usual| is_fallback_port(*usual, port) && conflict.is_none())
            {
                self.warn(format!("its usual port is {default_port}; it took {port}"));
            }
        }
        if let Some(line) = conflict {
            self.warn(line);
        }
        self.phase = if ready.unprobed {
            ReadinessPhase::Running
        } else {
            ReadinessPhase::Ready(self.at)
        };
        self.failure = None;
        self.enter_ready(main, ready.unprobed);
        let evidence = match socket.filter(|it| *it != ready.detail) {
            Some(socket) => format!("{socket}; {}", ready.detail),
            None => ready.detail,
        };
        events.push(ReadinessEvent::Ready {
            evidence,
            signals: self.signals.clone(),
            unprobed: ready.unprobed,
            warnings: self.warnings.clone(),
        });
    }

    /// The times at which the phase may change by time alone.
    pub(super) fn startup_deadlines(&self) -> Vec<Duration> {
        let evidence = self.output.evidence();
        let output = evidence.output_at.unwrap_or_default();
        let restarted_at = evidence.restarted_at.unwrap_or_default();
        let mut due = vec![restarted_at + ALIVE, restarted_at + PATIENT_ALIVE];
        due.extend(
            self.rule
                .compiles
                .then(|| self.quiet_since() + COMPILE_QUIET),
        );
        due.extend(evidence.in_use.as_ref().map(|it| it.at + IN_USE));
        due.extend(
            evidence
                .suspect
                .as_ref()
                .map(|it| it.at.max(self.quiet_since()) + SUSPECT),
        );
        due.extend(evidence.ready.as_ref().map(|it| it.at + LOG_GRACE));
        due.push(evidence.first_address_at + HOLD_BACK);
        due.extend(self.responded.map(|it| it + HOLD_BACK));
        due.extend(self.main_port().map(|it| it.settled));
        match (&self.rule.when, self.rule.kind) {
            (ReadyCondition::Quiet { ms: quiet }, _) => due.push(output + ms(*quiet)),
            (ReadyCondition::Auto, ServiceKind::Watcher) => due.push(output + WATCHER_QUIET),
            (ReadyCondition::Auto, ServiceKind::Multi) => due.push(self.ports_at + MULTI_SETTLE),
            (
                ReadyCondition::Auto
                | ReadyCondition::Listening
                | ReadyCondition::Responding
                | ReadyCondition::Log
                | ReadyCondition::Http { .. }
                | ReadyCondition::Tcp { .. }
                | ReadyCondition::Exec { .. }
                | ReadyCondition::Notify,
                _,
            ) => {}
        }
        due
    }
}

/// Whether a port is one that programs try when the usual one is taken.
fn is_fallback_port(usual: u16, port: u16) -> bool {
    port.checked_sub(usual)
        .is_some_and(|further| (1..=NEXT_PORTS).contains(&further))
}
