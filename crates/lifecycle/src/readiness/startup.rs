//! The startup phase: from spawn to ready, or to a startup failure.

use std::time::Duration;

use ostler_model::service::ALIVE_MS;
use ostler_model::{ReadyCondition, ServiceKind, ServiceStage, SignalKind};

use super::input::{ListeningSocket, ProbeRequest};
use super::limits::{
    COMPILE_QUIET, HOLD_BACK, IN_USE, LOG_GRACE, MULTI_SETTLE, PATIENT_ALIVE, SUSPECT,
    WATCHER_QUIET,
};
use super::main_port::{MainPortReason, is_debug_port, preferred_listener};
use super::messages::describe_listener;
use super::output::{NotedLine, OutputEvidence};
use super::printed_address::{AddressWeight, PrintedAddress};
use super::probe_state::{ProbeCriterion, ProbeSpec, ProbeSuccess};
use super::probe_target::{ProbeTarget, http_request, loopback_address};
use super::protocols::{is_non_http_port, is_non_http_program};
use super::scan_schedule::ms;
use super::state_machine::{
    MainPort, PortProtocol, Readiness, ReadinessEvent, ReadinessPhase, StartupFailure,
};

/// How many ports after a taken one programs try.
const NEXT_PORTS: u16 = 10;
/// How long alive means running.
const ALIVE: Duration = ms(ALIVE_MS);

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
    fn quiet_since(&self) -> Duration {
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

    /// The probe to run.
    fn startup_probe(&self, main: Option<&MainPort>) -> Option<ProbeSpec> {
        let settled = main.filter(|it| it.settled <= self.at);
        match &self.rule.when {
            ReadyCondition::Auto if self.rule.kind == ServiceKind::Multi => {
                let quiet = self.ports_at + MULTI_SETTLE <= self.at;
                Some(self.answer_probe(settled.filter(|_| quiet)?))
            }
            ReadyCondition::Auto | ReadyCondition::Responding => Some(self.answer_probe(settled?)),
            ReadyCondition::Http { .. } => match self.rule.target.as_ref()? {
                ProbeTarget::Path(path) => {
                    Some(self.http_probe(settled?, path, ProbeCriterion::Succeeds))
                }
                ProbeTarget::Url {
                    host,
                    port,
                    https,
                    path,
                } => {
                    let request = |address| ProbeRequest::Http {
                        address,
                        host: host.clone(),
                        path: path.clone(),
                        tls: *https,
                        unsure: false,
                    };
                    self.port_probe(host, *port, ProbeCriterion::Succeeds, &request)
                }
            },
            ReadyCondition::Tcp { port } => {
                self.port_probe("", *port, ProbeCriterion::Connects, &|address| {
                    ProbeRequest::Tcp { address }
                })
            }
            ReadyCondition::Exec { argv } => self.may_probe_outside().then(|| ProbeSpec {
                request: ProbeRequest::Exec { argv: argv.clone() },
                inode: None,
                criterion: ProbeCriterion::Exits,
            }),
            ReadyCondition::Log | ReadyCondition::Notify | ReadyCondition::Quiet { .. } => {
                self.protocol_probe(settled.filter(|_| self.should_detect_protocol())?)
            }
            ReadyCondition::Listening => None,
        }
    }

    pub(super) fn http_probe(
        &self,
        main: &MainPort,
        path: &str,
        pass: ProbeCriterion,
    ) -> ProbeSpec {
        let address = main.socket.address;
        // Once it has succeeded the order stays, whatever was detected.
        let previous = self.probe.http_options(main.socket.inode);
        let options = previous.unwrap_or_else(|| self.http_options(&main.socket, pass));
        ProbeSpec {
            request: http_request(address, path, options),
            inode: Some(main.socket.inode),
            criterion: pass,
        }
    }

    /// Whether TLS is tried first, and whether it may speak a protocol other than HTTP.
    pub(super) fn http_options(
        &self,
        socket: &ListeningSocket,
        pass: ProbeCriterion,
    ) -> (bool, bool) {
        let port = socket.address.port();
        let expects_http = self.rule.kind == ServiceKind::Server || self.prints_url(port);
        let is_http = matches!(self.protocol(port), Some(PortProtocol::Http { .. }));
        let any_answer = matches!(pass, ProbeCriterion::Answers | ProbeCriterion::Speaks);
        let unsure = any_answer && !expects_http && !is_http;
        (self.tls_first(port), unsure)
    }

    /// The probe whether it responds, in any protocol: to servers that do not speak HTTP only a
    /// connection is made.
    pub(super) fn answer_probe(&self, main: &MainPort) -> ProbeSpec {
        if !self.is_non_http(&main.socket) {
            return self.http_probe(main, "/", ProbeCriterion::Answers);
        }
        ProbeSpec {
            request: ProbeRequest::Tcp {
                address: main.socket.address,
            },
            inode: Some(main.socket.inode),
            criterion: ProbeCriterion::Connects,
        }
    }

    /// Whether a socket is known to speak no HTTP: by its program, or by its port where nothing
    /// says otherwise.
    pub(super) fn is_non_http(&self, socket: &ListeningSocket) -> bool {
        let port = socket.address.port();
        is_non_http_program(socket) || (is_non_http_port(port) && !self.prints_url(port))
    }

    /// Whether readiness itself probes the main port.
    pub(super) fn probes_main_port(&self) -> bool {
        match self.rule.when {
            ReadyCondition::Auto | ReadyCondition::Responding => true,
            ReadyCondition::Http { .. } => matches!(self.rule.target, Some(ProbeTarget::Path(_))),
            ReadyCondition::Listening
            | ReadyCondition::Log
            | ReadyCondition::Tcp { .. }
            | ReadyCondition::Exec { .. }
            | ReadyCondition::Notify
            | ReadyCondition::Quiet { .. } => false,
        }
    }

    /// Records the protocol that a probe of the main port detected.
    pub(super) fn record_protocol(&mut self, port: u16, success: &ProbeSuccess) {
        match success.tls {
            Some(tls) => self.set_protocol(port, PortProtocol::Http { tls }),
            None if success.silent => {}
            None => self.set_protocol(port, PortProtocol::Other),
        }
    }

    /// A probe of a port of the tree; where none of the tree listens on it, of one outside, unless
    /// it is a server: another process may listen there.
    fn port_probe(
        &self,
        host: &str,
        port: u16,
        pass: ProbeCriterion,
        request: &dyn Fn(std::net::SocketAddr) -> ProbeRequest,
    ) -> Option<ProbeSpec> {
        if let Some(listener) = preferred_listener(&self.usable(), port) {
            return Some(ProbeSpec {
                request: request(listener.socket.address),
                inode: Some(listener.socket.inode),
                criterion: pass,
            });
        }
        let address = (self.rule.kind != ServiceKind::Server && self.may_probe_outside())
            .then(|| loopback_address(host, port))?;
        Some(ProbeSpec {
            request: request(address),
            inode: None,
            criterion: pass,
        })
    }

    /// Whether a listener outside the tree may show it ready: after a failure only where ports of
    /// the tree show nothing anyway.
    fn may_probe_outside(&self) -> bool {
        let ports_irrelevant = matches!(self.rule.kind, ServiceKind::Multi | ServiceKind::Watcher);
        self.failure.is_none() || ports_irrelevant || !self.usable().is_empty()
    }

    /// Whether it is ready now, and by what evidence.
    fn ready_evidence(
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

/// The line of an idle watcher; a rule with its own expression is given time to match.
fn idle_line(evidence: &OutputEvidence, at: Duration) -> Option<&NotedLine> {
    let patient = if evidence.has_ready() {
        PATIENT_ALIVE
    } else {
        Duration::ZERO
    };
    evidence.idle.as_ref().filter(|it| it.at + patient <= at)
}
