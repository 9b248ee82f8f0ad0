//! The readiness state machine, over startup and health.

use std::time::Duration;

use ostler_model::service::PROBE_TIMEOUT_MS;
use ostler_model::{
    HealthRule, ReadinessSignal, ReadyCondition, ReadyRule, ServiceKind, ServicePort, ServiceStage,
    SignalKind, Timestamp,
};

use super::event::{ReadinessEvent, WatchPlan};
use super::health::{HealthCheck, HealthState};
use super::input::{ListeningSocket, NotifyState, ProbeRequest, ReadinessInput};
use super::limits::{HEALTH_TIMEOUT, RECHECK_TIMEOUT, SETTLE, SIGNS_MAX};
use super::listeners::{Listeners, gone_after};
use super::main_port::MainPortReason;
use super::output::{OutputAnalyzer, ReadMode};
use super::probe_state::ProbeState;
use super::probe_target::ProbeTarget;
use super::scan_schedule::{ScanPace, first_scan, ms};

/// The readiness of one attempt.
#[derive(Debug, Clone)]
pub struct Readiness {
    pub(super) rule: ReadinessRule,
    pub(super) output: OutputAnalyzer,
    pub(super) listeners: Listeners,
    pub(super) probe: ProbeState,
    pub(super) phase: ReadinessPhase,
    pub(super) failure: Option<StartupFailure>,
    pub(super) health_state: HealthState,
    pub(super) health: Option<HealthCheck>,
    pub(super) notify_state: NotifyState,
    /// When the process count last changed, and when the ports did.
    pub(super) members_at: Duration,
    pub(super) ports_at: Duration,
    /// When the main port responded, before its ready line.
    pub(super) responded: Option<Duration>,
    pub(super) stage: Option<ServiceStage>,
    pub(super) signals: Vec<ReadinessSignal>,
    pub(super) warnings: Vec<String>,
    pub(super) published: PublishedPorts,
    pub(super) known_protocol: Option<(u16, PortProtocol)>,
    pub(super) resumed: bool,
    /// When the first input arrived.
    pub(super) first_input_at: Option<Duration>,
    pub(super) at: Duration,
    pub(super) now: Timestamp,
}

/// The parts of the rule that matter in each step.
#[derive(Debug, Clone)]
pub(super) struct ReadinessRule {
    pub(super) when: ReadyCondition,
    pub(super) kind: ServiceKind,
    /// The requested port, by the command or by the rule itself.
    pub(super) requested_port: Option<u16>,
    pub(super) default_port: Option<u16>,
    pub(super) listens_before_ready: bool,
    pub(super) compiles: bool,
    pub(super) target: Option<ProbeTarget>,
}

/// The phase of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReadinessPhase {
    Startup,
    /// Running without a readiness rule, so far.
    Running,
    /// Ready, this long after the attempt's start.
    Ready(Duration),
}

/// A failure before ready: sockets that existed then are no evidence any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StartupFailure {
    /// Inodes of the sockets that existed then.
    pub(super) inodes: Vec<u64>,
    /// The published detail.
    pub(super) detail: String,
}

/// The protocol that was detected on a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PortProtocol {
    /// HTTP, over TLS or not.
    Http {
        /// Whether over TLS.
        tls: bool,
    },
    Other,
}

/// Ports the service published.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct PublishedPorts {
    pub(super) ports: Vec<ServicePort>,
    pub(super) url: Option<String>,
}

/// The main port.
#[derive(Debug, Clone)]
pub(super) struct MainPort {
    pub(super) socket: ListeningSocket,
    pub(super) reason: MainPortReason,
    /// Since when it listens.
    pub(super) since: Duration,
    /// Since when the choice is certain.
    pub(super) settled: Duration,
}

impl Readiness {
    /// The readiness of an attempt that begins now. Expressions that do not compile match nothing:
    /// admission refuses them before.
    #[must_use]
    pub fn new(rule: &ReadyRule, health: Option<&HealthRule>) -> Self {
        Self {
            rule: ReadinessRule::new(rule),
            output: OutputAnalyzer::new(rule),
            listeners: Listeners::default(),
            probe: ProbeState::default(),
            phase: ReadinessPhase::Startup,
            failure: None,
            health_state: HealthState::default(),
            health: health.map(HealthCheck::new),
            notify_state: NotifyState::default(),
            members_at: Duration::ZERO,
            ports_at: Duration::ZERO,
            responded: None,
            stage: None,
            signals: Vec::new(),
            warnings: Vec::new(),
            published: PublishedPorts::default(),
            known_protocol: None,
            resumed: false,
            first_input_at: None,
            at: Duration::ZERO,
            now: Timestamp::UNIX_EPOCH,
        }
    }

    /// Handles one input, this long after the attempt's start; `current` is the timestamp of
    /// signals.
    pub fn handle(
        &mut self,
        elapsed: Duration,
        now: Timestamp,
        input: ReadinessInput,
    ) -> Vec<ReadinessEvent> {
        self.at = self.at.max(elapsed);
        self.now = now;
        self.first_input_at.get_or_insert(self.at);
        let mut events = Vec::new();
        self.apply_input(input);
        let mode = self.read_mode();
        self.output.flush_partial(self.at, mode);
        self.update_main_port();
        self.publish_ports(&mut events);
        match self.phase {
            ReadinessPhase::Startup => self.step_startup(&mut events),
            ReadinessPhase::Running => {
                self.step_startup(&mut events);
                self.step_ready(&mut events);
            }
            ReadinessPhase::Ready(_) => self.step_ready(&mut events),
        }
        // The input may have revealed TLS, which is part of the URL.
        self.publish_ports(&mut events);
        events
    }

    /// What to observe from now on.
    #[must_use]
    pub fn watch_plan(&self, elapsed: Duration) -> WatchPlan {
        let at = elapsed.max(self.at);
        WatchPlan {
            scan_at: Some(self.scan_at().max(elapsed)),
            probe: self.due_probe(at).cloned(),
            probe_timeout: self.probe_timeout(at),
            output: true,
            // A server has a port; anything else may listen on a path only.
            unix: self.rule.kind != ServiceKind::Server,
            notify: self.rule.when == ReadyCondition::Notify,
            wake_at: self.deadlines().filter(|it| *it > self.at).min(),
        }
    }

    fn apply_input(&mut self, input: ReadinessInput) {
        match input {
            ReadinessInput::Sockets {
                sockets,
                unix,
                members,
            } => {
                let gone = gone_after(self.is_ready());
                let before = self.listeners.all().count();
                self.listeners.scan(self.at, sockets, unix, gone);
                if self.listeners.all().count() > before {
                    self.ports_at = self.at;
                }
                let fewer = self.listeners.members() > members;
                if self.listeners.update_members(members) {
                    self.members_at = self.at;
                }
                if self.is_ready() && (fewer || self.is_backlogged()) {
                    self.request_recheck();
                }
            }
            ReadinessInput::Output { stream, bytes } => {
                let mode = self.read_mode();
                self.output.push(stream, &bytes, self.at, mode);
            }
            ReadinessInput::ProbeFinished(result) => {
                if self.probe.due_probe(self.at).is_some() {
                    self.probe.handle_result(result, self.at);
                } else if let Some(health) = &mut self.health {
                    health.handle_result(result, self.at);
                }
            }
            ReadinessInput::Notify(state) => self.merge_notify(state),
            ReadinessInput::Time => {}
        }
    }

    fn merge_notify(&mut self, state: NotifyState) {
        self.notify_state.ready |= state.ready;
        self.notify_state.stopping = state.stopping || (self.notify_state.stopping && !state.ready);
        self.notify_state.watchdog |= state.watchdog;
        if state.status.is_some() {
            self.notify_state.status = state.status;
        }
    }

    fn read_mode(&self) -> ReadMode {
        match self.phase {
            ReadinessPhase::Startup | ReadinessPhase::Running => ReadMode::Everything,
            ReadinessPhase::Ready(since) if !self.resumed && self.at < since + SETTLE => {
                ReadMode::Addresses
            }
            ReadinessPhase::Ready(_) => ReadMode::LastLine,
        }
    }

    pub(super) fn is_ready(&self) -> bool {
        matches!(self.phase, ReadinessPhase::Ready(_))
    }

    /// The probe that should be in progress: that of readiness takes precedence.
    fn due_probe(&self, at: Duration) -> Option<&ProbeRequest> {
        let health = || {
            self.health
                .as_ref()
                .filter(|_| self.phase != ReadinessPhase::Startup)
        };
        self.probe.due_probe(at).or_else(|| health()?.due_probe(at))
    }

    /// The timeout of the probe in progress: during startup as long as a first page takes to be
    /// compiled, except for a requested URL, which is for checks and tried again.
    fn probe_timeout(&self, at: Duration) -> Duration {
        let tries_url = self.phase == ReadinessPhase::Startup && self.rule.target.is_some();
        match self.probe.due_probe(at) {
            Some(_) if self.is_rechecking() => RECHECK_TIMEOUT,
            Some(_) if tries_url => HEALTH_TIMEOUT,
            Some(_) => ms(PROBE_TIMEOUT_MS),
            None => HEALTH_TIMEOUT,
        }
    }

    /// How often sockets are scanned.
    fn pace(&self) -> ScanPace {
        match (self.phase, self.rule.kind) {
            (ReadinessPhase::Ready(_), _) => ScanPace::Ready,
            (ReadinessPhase::Running, _) | (ReadinessPhase::Startup, ServiceKind::Watcher) => {
                ScanPace::Running
            }
            (
                ReadinessPhase::Startup,
                ServiceKind::Unknown
                | ServiceKind::Server
                | ServiceKind::Socket
                | ServiceKind::Multi,
            ) => ScanPace::Starting,
        }
    }

    fn scan_at(&self) -> Duration {
        let output = self.output.evidence().output_at;
        let Some(scanned_at) = self.listeners.scanned_at() else {
            return if self.resumed {
                Duration::ZERO
            } else {
                first_scan(output)
            };
        };
        let pace = self.pace();
        let output = output.filter(|it| *it > scanned_at);
        [
            self.listeners.confirm_at(gone_after(self.is_ready())),
            self.probe.confirm_at(Some(scanned_at)),
            output.map(|it| pace.after_output(scanned_at, it)),
            self.health
                .as_ref()
                .and_then(|it| it.failed_at())
                .filter(|it| *it > scanned_at)
                .map(|it| pace.after_output(scanned_at, it)),
        ]
        .into_iter()
        .flatten()
        .fold(scanned_at + pace.interval(scanned_at), Duration::min)
        .max(scanned_at + ms(1))
    }

    /// The times at which the state may change by time alone.
    fn deadlines(&self) -> impl Iterator<Item = Duration> {
        let starting = if self.is_ready() {
            Vec::new()
        } else {
            self.startup_deadlines()
        };
        let health = self
            .health
            .as_ref()
            .filter(|_| self.phase != ReadinessPhase::Startup);
        let lines = self.output.due();
        lines
            .chain(starting)
            .chain(self.probe.due())
            .chain(health.map(HealthCheck::due))
    }

    /// Records a signal.
    pub(super) fn record_signal(&mut self, kind: SignalKind, detail: String) -> ReadinessSignal {
        let signal = ReadinessSignal {
            kind,
            detail,
            at: self.now,
        };
        let is_known = self
            .signals
            .iter()
            .any(|it| it.kind == kind && it.detail == signal.detail);
        if !is_known && self.signals.len() < SIGNS_MAX {
            self.signals.push(signal.clone());
        }
        signal
    }

    /// Records a warning.
    pub(super) fn warn(&mut self, warning: String) {
        if !self.warnings.contains(&warning) && self.warnings.len() < SIGNS_MAX {
            self.warnings.push(warning);
        }
    }
}

impl ReadinessRule {
    fn new(rule: &ReadyRule) -> Self {
        let (target, port) = match &rule.when {
            ReadyCondition::Http { target } => {
                let target = ProbeTarget::parse(target);
                let port = target.port();
                (Some(target), port)
            }
            ReadyCondition::Tcp { port } => (None, Some(*port)),
            ReadyCondition::Auto
            | ReadyCondition::Listening
            | ReadyCondition::Responding
            | ReadyCondition::Log
            | ReadyCondition::Exec { .. }
            | ReadyCondition::Notify
            | ReadyCondition::Quiet { .. } => (None, None),
        };
        Self {
            when: rule.when.clone(),
            kind: rule.kind,
            requested_port: rule.port.or(port),
            default_port: rule.default_port,
            listens_before_ready: rule.listens_before_ready,
            compiles: rule.compiles,
            target,
        }
    }
}
