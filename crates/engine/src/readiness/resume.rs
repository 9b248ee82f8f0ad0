//! What an earlier engine knew.

use ostler_model::{HealthRule, Port, ReadyRule, ServiceKind};

use super::limits::GONE;
use super::machine::{Phase, Protocol, Readiness, Told};
use super::printed;
use super::schedule::ms;

impl Readiness {
    /// For an attempt an earlier engine started and that was ready by then (or running), or not.
    #[must_use]
    pub fn resume(rule: &ReadyRule, health: Option<&HealthRule>, ready: bool) -> Self {
        let mut it = Self::new(rule, health);
        it.resumed = true;
        if ready {
            it.phase = Phase::Ready(ms(0));
        }
        it
    }

    /// With the ports and the URL that were told before, which stay as they are while that port
    /// listens: what was printed is not read again.
    #[must_use]
    pub fn remember(mut self, ports: &[Port], url: Option<&str>) -> Self {
        if let Some(main) = ports.iter().find(|it| it.main) {
            let port = main.address.port();
            if url.is_some() {
                self.set_protocol(port, Protocol::Http { tls: main.tls });
            }
            if self.is_ready() {
                self.after.main = Some(port);
            }
        }
        let words = self.heard.words_mut();
        words.printed.extend(url.and_then(printed::parse));
        self.told = Told {
            ports: ports.to_vec(),
            url: url.map(str::to_owned),
        };
        self
    }

    /// Whether there was time enough to see the ports of before again.
    pub(super) fn has_looked(&self) -> bool {
        let sure = self.began.map(|it| it + GONE);
        !self.resumed || self.listeners.scanned() >= sure
    }

    /// Whether it was ready by an earlier engine's account and the port that must have been
    /// there is not.
    pub(super) fn is_lost(&self) -> bool {
        let server = self.resumed && self.rule.kind == ServiceKind::Server;
        server && self.is_ready() && self.expects_port()
    }
}
