//! Restores readiness from what an earlier engine recorded.

use ostler_model::{HealthRule, ReadyRule, ServiceKind, ServicePort};

use super::limits::GONE;
use super::printed_address;
use super::scan_schedule::ms;
use super::state_machine::{PortProtocol, PublishedPorts, Readiness, ReadinessPhase};

impl Readiness {
    /// The readiness of an attempt that an earlier engine started and that was ready by then (or
    /// running), or not.
    #[must_use]
    pub fn resume(rule: &ReadyRule, health: Option<&HealthRule>, ready: bool) -> Self {
        let mut readiness = Self::new(rule, health);
        readiness.resumed = true;
        if ready {
            readiness.phase = ReadinessPhase::Ready(ms(0));
        }
        readiness
    }

    /// Restores the published ports and URL, which stay as they are while that port listens:
    /// printed output is not read again.
    #[must_use]
    pub fn with_published(mut self, ports: &[ServicePort], url: Option<&str>) -> Self {
        if let Some(main) = ports.iter().find(|it| it.main) {
            let port = main.address.port();
            if url.is_some() {
                self.set_protocol(port, PortProtocol::Http { tls: main.tls });
            }
            if self.is_ready() {
                self.health_state.main = Some(port);
            }
        }
        let evidence = self.output.evidence_mut();
        evidence
            .addresses
            .extend(url.and_then(printed_address::parse));
        self.published = PublishedPorts {
            ports: ports.to_vec(),
            url: url.map(str::to_owned),
        };
        self
    }

    /// Whether enough time has passed to see the earlier ports again.
    pub(super) fn has_rescanned(&self) -> bool {
        let certain_at = self.first_input_at.map(|it| it + GONE);
        !self.resumed || self.listeners.scanned_at() >= certain_at
    }

    /// Whether it was ready according to an earlier engine and the port that must have listened
    /// does not.
    pub(super) fn has_lost_port(&self) -> bool {
        let server = self.resumed && self.rule.kind == ServiceKind::Server;
        server && self.is_ready() && self.expects_port()
    }
}
