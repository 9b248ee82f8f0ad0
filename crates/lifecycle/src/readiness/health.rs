//! Health after ready: the main port, the health probe, the service's notify messages.

use std::time::Duration;

use ostler_model::service::HEALTH_INTERVAL_MS;
use ostler_model::{HealthRule, ReadyCondition, ServiceKind};

use super::event::ReadinessEvent;
use super::input::{ProbeOutcome, ProbeRequest};
use super::limits::{BACKLOG_LIMIT, HEALTH_FAILURES, HEALTH_INTERVAL_MIN, RECHECK_INTERVAL};
use super::main_port::{MainPortReason, preferred_listener};
use super::messages::describe_listener;
use super::probe_state::{ProbeCriterion, ProbeSpec, evaluate};
use super::probe_target::{ProbeTarget, http_request, loopback_address};
use super::scan_schedule::ms;
use super::state_machine::{MainPort, Readiness};

/// The health state of a ready service.
#[derive(Debug, Clone, Default)]
pub(super) struct HealthState {
    /// The main port.
    pub(super) main: Option<u16>,
    /// When the main port was last seen listening.
    main_seen_at: Duration,
    /// The unix socket, where that is what the service listens on.
    unix_path: Option<String>,
    /// The published problem.
    unhealthy: Option<String>,
    /// Whether a restart was requested.
    restart_requested: bool,
    /// Whether it became ready by a response of its main port.
    ready_by_answer: bool,
    /// The time of the last recheck.
    rechecked_at: Option<Duration>,
    /// Whether a recheck is in progress.
    recheck: bool,
    /// Whether the main port's protocol is to be detected.
    detect_protocol: bool,
    /// Since when connections wait in its accept queue.
    backlogged_since: Option<Duration>,
}

impl Readiness {
    /// Enters the ready phase.
    pub(super) fn enter_ready(&mut self, main: Option<MainPort>, unprobed: bool) {
        let port = main
            .filter(|it| it.reason != MainPortReason::Debug)
            .map(|it| it.socket.address.port());
        let unix = self.listeners.unix().next().map(str::to_owned);
        self.health_state = HealthState {
            main: port,
            main_seen_at: self.at,
            unix_path: unix.filter(|_| port.is_none() && !unprobed),
            ready_by_answer: self.responded.is_some() && !unprobed,
            detect_protocol: self.should_detect_protocol() && !unprobed,
            ..HealthState::default()
        };
        self.probe.set_spec(None, self.at);
        if let Some(health) = &mut self.health {
            health.start(self.at);
        }
    }

    pub(super) fn step_ready(&mut self, events: &mut Vec<ReadinessEvent>) {
        self.probe_ready();
        self.check_health();
        let health = self.health.as_ref().and_then(|it| it.unhealthy_detail());
        let restart = self
            .health
            .as_ref()
            .is_some_and(|it| it.rule.restart && it.unhealthy_detail().is_some());
        let problem = self.problem().or_else(|| health.map(str::to_owned));
        match (problem, &self.health_state.unhealthy) {
            (Some(detail), reported)
                if reported.is_none() || (restart && !self.health_state.restart_requested) =>
            {
                let detail = if restart {
                    health.map_or(detail, str::to_owned)
                } else {
                    detail
                };
                self.health_state.unhealthy = Some(detail.clone());
                self.health_state.restart_requested = restart;
                events.push(ReadinessEvent::Unhealthy { detail, restart });
            }
            (None, Some(_)) => {
                self.health_state.unhealthy = None;
                self.health_state.restart_requested = false;
                let detail = self.main_port().map_or_else(
                    || "well again".to_owned(),
                    |it| describe_listener(&it.socket),
                );
                events.push(ReadinessEvent::Healthy { detail });
            }
            (Some(_), _) | (None, None) => {}
        }
    }

    /// Updates the main port, where it was not known yet, another was named, or it is gone and
    /// another has been opened since.
    pub(super) fn update_main_port(&mut self) {
        let main = self
            .main_port()
            .filter(|it| it.reason != MainPortReason::Debug);
        let Some(main) = main.filter(|_| self.is_ready()) else {
            return;
        };
        let is_listening = self
            .health_state
            .main
            .is_some_and(|it| self.listeners.has_port(it));
        if is_listening {
            self.health_state.main_seen_at = self.at;
        }
        if is_listening
            || self.health_state.main.is_none()
            || main.since > self.health_state.main_seen_at
        {
            // Another port may speak another protocol.
            let another = self
                .health_state
                .main
                .is_some_and(|it| it != main.socket.address.port());
            self.health_state.detect_protocol |= another && self.should_detect_protocol();
            self.health_state.main = Some(main.socket.address.port());
            self.health_state.unix_path = None;
        }
    }

    /// Requests a recheck: a process is gone. Where another one holds the same socket (a reloader,
    /// a parent of workers), the port listens on although nobody responds.
    pub(super) fn request_recheck(&mut self) {
        let is_recent = self
            .health_state
            .rechecked_at
            .is_some_and(|it| self.at < it + RECHECK_INTERVAL);
        if self.health_state.ready_by_answer && self.health.is_none() && !is_recent {
            self.health_state.recheck = true;
            self.health_state.rechecked_at = Some(self.at);
        }
    }

    /// Whether to detect the main port's protocol, where readiness does not depend on it. A port
    /// whose readiness needs only a connection, or less, is left alone.
    pub(super) fn should_detect_protocol(&self) -> bool {
        let is_connect_only = matches!(
            self.rule.when,
            ReadyCondition::Tcp { .. } | ReadyCondition::Listening
        );
        let is_watcher = self.rule.kind == ServiceKind::Watcher;
        let has_own_url = matches!(self.rule.target, Some(ProbeTarget::Url { .. }));
        !is_connect_only && !is_watcher && !has_own_url && !self.resumed
    }

    /// Whether the ready port is being rechecked.
    pub(super) fn is_rechecking(&self) -> bool {
        self.is_ready() && self.health_state.recheck
    }

    /// Whether the holder of the main port was stopped, or has left connections waiting for long.
    pub(super) fn is_backlogged(&mut self) -> bool {
        let main = self.main_port();
        let waits = main.as_ref().is_some_and(|it| it.socket.waiting > 0);
        self.health_state.backlogged_since = match (waits, self.health_state.backlogged_since) {
            (true, since) => since.or(Some(self.at)),
            (false, _) => None,
        };
        let long = |since: Duration| since + BACKLOG_LIMIT <= self.at;
        self.health_state.backlogged_since.is_some_and(long)
            || main.is_some_and(|it| it.socket.stopped)
    }

    /// Probes the main port during a recheck, or to detect its protocol.
    fn probe_ready(&mut self) {
        if !self.is_ready() {
            return;
        }
        let main = self.main_port().filter(|it| it.settled <= self.at);
        let spec = match &main {
            Some(main) if self.health_state.recheck => Some(self.answer_probe(main)),
            Some(main) if self.health_state.detect_protocol => self.protocol_probe(main),
            Some(_) | None => None,
        };
        self.probe.set_spec(spec, self.at);
        let scanned = self.listeners.scanned_at();
        let success = self.probe.confirmed_success(
            scanned,
            |inode| self.listeners.is_drained(inode),
            self.at,
        );
        if let (Some(success), Some(main)) = (&success, &main)
            && self.health_state.detect_protocol
        {
            self.record_protocol(main.socket.address.port(), success);
        }
        let failed = self.probe.last_failure().is_some();
        if success.is_some() || (failed && !self.health_state.recheck) {
            self.health_state.recheck = false;
            self.health_state.detect_protocol = false;
            self.probe.set_spec(None, self.at);
        }
    }

    /// The probe that detects HTTP, with a long timeout, since a server that was silent before may
    /// have been busy.
    pub(super) fn protocol_probe(&self, main: &MainPort) -> Option<ProbeSpec> {
        let port = main.socket.address.port();
        if self.protocol(port).is_some() || self.is_non_http(&main.socket) {
            return None;
        }
        let has_answered = self.is_ready() && self.health_state.ready_by_answer;
        let mut default_options = self.http_options(&main.socket, ProbeCriterion::Speaks);
        default_options.unsure &= !has_answered;
        let options = self
            .probe
            .http_options(main.socket.inode)
            .unwrap_or(default_options);
        Some(ProbeSpec {
            request: http_request(main.socket.address, "/", options),
            inode: Some(main.socket.inode),
            criterion: ProbeCriterion::Speaks,
        })
    }

    /// The problem of a listener that is gone, if any.
    fn lost_listener(&self) -> Option<String> {
        if !self.has_rescanned() {
            return None;
        }
        if let Some(port) = self.health_state.main {
            if !self.listeners.has_port(port) {
                return Some(format!("port {port} is no longer listening"));
            }
            let failure = self
                .probe
                .last_failure()
                .filter(|_| self.health_state.recheck)?;
            let stopped = self.main_port().is_some_and(|it| it.socket.stopped);
            let stopped = if stopped {
                "; its process is stopped by a signal"
            } else {
                ""
            };
            return Some(format!(
                "port {port} no longer answers ({failure}{stopped})"
            ));
        }
        if let Some(path) = &self.health_state.unix_path {
            let is_listening = self.listeners.unix().any(|it| it == path);
            return (!is_listening).then(|| format!("unix {path} is no longer listening"));
        }
        self.has_lost_port()
            .then(|| "no port listens any more".to_owned())
    }

    /// The problem, without the health rule.
    fn problem(&self) -> Option<String> {
        if self.notify_state.stopping {
            let status = self
                .notify_state
                .status
                .as_deref()
                .map_or_else(String::new, |it| format!(": {it}"));
            return Some(format!("it says that it is stopping{status}"));
        }
        let gone = self.lost_listener()?;
        let last = &self.output.evidence().last_line;
        Some(if last.is_empty() {
            gone
        } else {
            format!("{gone}; last line: {last}")
        })
    }

    fn check_health(&mut self) {
        let Some(mut health) = self.health.take() else {
            return;
        };
        let main = self.main_port();
        let inspection = self.inspect_health(&health.rule.probe, main.as_ref());
        match inspection {
            HealthInspection::Probe(spec) => health.set_spec(spec, self.at),
            HealthInspection::Healthy => health.record(Ok(()), self.at),
            HealthInspection::Unhealthy(detail) => health.record(Err(detail), self.at),
            HealthInspection::NotApplicable => health.skip(self.at),
        }
        self.health = Some(health);
    }

    /// What a health rule checks now.
    fn inspect_health(&self, probe: &ReadyCondition, main: Option<&MainPort>) -> HealthInspection {
        let at_main = |path: &str, pass| match main {
            Some(main) => {
                let options = self.http_options(&main.socket, pass);
                let is_non_http = pass == ProbeCriterion::Answers && self.is_non_http(&main.socket);
                let spec = if is_non_http {
                    self.answer_probe(main)
                } else {
                    self.http_probe(main, path, pass)
                };
                let request = match spec.request {
                    ProbeRequest::Http { .. } => http_request(main.socket.address, path, options),
                    order @ (ProbeRequest::Tcp { .. } | ProbeRequest::Exec { .. }) => order,
                };
                HealthInspection::Probe(ProbeSpec {
                    request,
                    inode: None,
                    ..spec
                })
            }
            None => HealthInspection::Unhealthy("no port listens".to_owned()),
        };
        let at_port = |host: &str, port: u16| {
            let own = preferred_listener(&self.listeners.all().collect::<Vec<_>>(), port);
            own.map_or_else(|| loopback_address(host, port), |it| it.socket.address)
        };
        match probe {
            ReadyCondition::Listening => match main {
                Some(_) => HealthInspection::Healthy,
                None => HealthInspection::Unhealthy("no port listens".to_owned()),
            },
            ReadyCondition::Auto | ReadyCondition::Responding => {
                at_main("/", ProbeCriterion::Answers)
            }
            ReadyCondition::Http { target } => match ProbeTarget::parse(target) {
                ProbeTarget::Path(path) => at_main(&path, ProbeCriterion::Succeeds),
                ProbeTarget::Url {
                    host,
                    port,
                    https,
                    path,
                } => HealthInspection::Probe(ProbeSpec {
                    request: ProbeRequest::Http {
                        address: at_port(&host, port),
                        host,
                        path,
                        tls: https,
                        unsure: false,
                    },
                    inode: None,
                    criterion: ProbeCriterion::Succeeds,
                }),
            },
            ReadyCondition::Tcp { port } => HealthInspection::Probe(ProbeSpec {
                request: ProbeRequest::Tcp {
                    address: at_port("", *port),
                },
                inode: None,
                criterion: ProbeCriterion::Connects,
            }),
            ReadyCondition::Exec { argv } => HealthInspection::Probe(ProbeSpec {
                request: ProbeRequest::Exec { argv: argv.clone() },
                inode: None,
                criterion: ProbeCriterion::Exits,
            }),
            ReadyCondition::Log | ReadyCondition::Notify | ReadyCondition::Quiet { .. } => {
                HealthInspection::NotApplicable
            }
        }
    }
}

/// One health check.
enum HealthInspection {
    /// Run this probe.
    Probe(ProbeSpec),
    /// Healthy without a probe.
    Healthy,
    /// Unhealthy, with the cause.
    Unhealthy(String),
    /// Nothing to check.
    NotApplicable,
}

/// The health rule's state.
#[derive(Debug, Clone)]
pub(super) struct HealthCheck {
    pub(super) rule: HealthRule,
    spec: Option<ProbeSpec>,
    /// When the next check is due; it stays due until its result arrives.
    due: Option<Duration>,
    failures: u32,
    detail: String,
    failed_at: Option<Duration>,
}

impl HealthCheck {
    pub(super) fn new(rule: &HealthRule) -> Self {
        Self {
            rule: rule.clone(),
            spec: None,
            due: None,
            failures: 0,
            detail: String::new(),
            failed_at: None,
        }
    }

    /// Starts the checks; the first one comes after one interval.
    fn start(&mut self, at: Duration) {
        *self = Self {
            due: Some(at + self.interval()),
            ..Self::new(&self.rule)
        };
    }

    fn interval(&self) -> Duration {
        self.rule
            .interval
            .unwrap_or(ms(HEALTH_INTERVAL_MS))
            .max(HEALTH_INTERVAL_MIN)
    }

    /// The probe that should be in progress.
    pub(super) fn due_probe(&self, at: Duration) -> Option<&ProbeRequest> {
        self.spec
            .as_ref()
            .filter(|_| self.is_due(at))
            .map(|it| &it.request)
    }

    /// When the next check is due.
    pub(super) fn due(&self) -> Duration {
        self.due.unwrap_or_default()
    }

    /// When the last check failed, if it did.
    pub(super) fn failed_at(&self) -> Option<Duration> {
        self.failed_at
    }

    /// The problem, after enough failures in a row.
    fn unhealthy_detail(&self) -> Option<&str> {
        let threshold = if self.rule.failures == 0 {
            HEALTH_FAILURES
        } else {
            self.rule.failures
        };
        (self.failures >= threshold).then_some(&self.detail)
    }

    fn is_due(&self, at: Duration) -> bool {
        self.due.is_some_and(|due| due <= at)
    }

    fn set_spec(&mut self, aim: ProbeSpec, at: Duration) {
        self.due.get_or_insert(at + self.interval());
        self.spec = Some(aim);
    }

    /// Handles the result of a probe.
    pub(super) fn handle_result(&mut self, answered: ProbeOutcome, at: Duration) {
        if let Some(aim) = self.spec.as_ref().filter(|_| self.is_due(at)) {
            let outcome = evaluate(aim, answered, at).map(|_| ());
            self.record(outcome, at);
        }
    }

    /// Skips a check that has nothing to check.
    fn skip(&mut self, at: Duration) {
        self.record(Ok(()), at);
    }

    /// Records a check without a probe, where one is due.
    fn record(&mut self, outcome: Result<(), String>, at: Duration) {
        let interval = self.interval();
        let due = *self.due.get_or_insert(at + interval);
        if due > at {
            return;
        }
        self.due = Some(at + interval);
        match outcome {
            Ok(()) => {
                self.failures = 0;
                self.failed_at = None;
            }
            Err(detail) => {
                self.failures = self.failures.saturating_add(1);
                self.detail = format!("health: {detail} ({} times in a row)", self.failures);
                self.failed_at = Some(at);
            }
        }
    }
}
