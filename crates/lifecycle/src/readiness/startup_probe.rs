//! Which probe the startup needs, and which protocol a port speaks.

use ostler_model::{ReadyCondition, ServiceKind};

use super::input::{ListeningSocket, ProbeRequest};
use super::limits::MULTI_SETTLE;
use super::main_port::preferred_listener;
use super::probe_state::{ProbeCriterion, ProbeSpec, ProbeSuccess};
use super::probe_target::{HttpProbeOptions, ProbeTarget, http_request, loopback_address};
use super::protocols::{is_non_http_port, is_non_http_program};
use super::state_machine::{MainPort, PortProtocol, Readiness};

impl Readiness {
    /// The probe to run.
    pub(super) fn startup_probe(&self, main: Option<&MainPort>) -> Option<ProbeSpec> {
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

    /// How a request to a socket is tried.
    pub(super) fn http_options(
        &self,
        socket: &ListeningSocket,
        pass: ProbeCriterion,
    ) -> HttpProbeOptions {
        let port = socket.address.port();
        let expects_http = self.rule.kind == ServiceKind::Server || self.prints_url(port);
        let is_http = matches!(self.protocol(port), Some(PortProtocol::Http { .. }));
        let any_answer = matches!(pass, ProbeCriterion::Answers | ProbeCriterion::Speaks);
        let unsure = any_answer && !expects_http && !is_http;
        HttpProbeOptions {
            tls: self.tls_first(port),
            unsure,
        }
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
    pub(super) fn may_probe_outside(&self) -> bool {
        let ports_irrelevant = matches!(self.rule.kind, ServiceKind::Multi | ServiceKind::Watcher);
        self.failure.is_none() || ports_irrelevant || !self.usable().is_empty()
    }
}
