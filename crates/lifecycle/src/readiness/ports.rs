//! The ports of a service: the main one, their protocols, and what is published of them.

use super::event::ReadinessEvent;
use super::listeners::ConfirmedListener;
use super::main_port::{PortHints, is_debug_port, is_same_url, sorted_ports};
use super::printed_address::AddressWeight;
use super::state_machine::{MainPort, PortProtocol, PublishedPorts, Readiness};

impl Readiness {
    /// Confirmed sockets that count: those from before a failure do not.
    pub(super) fn usable(&self) -> Vec<ConfirmedListener<'_>> {
        let stale = self.failure.as_ref().map_or(&[][..], |it| &it.inodes);
        let all = self.listeners.all();
        all.filter(|it| !stale.contains(&it.socket.inode)).collect()
    }

    /// Chooses the main port among these.
    fn choose_main_port(&self, listeners: &[ConfirmedListener<'_>]) -> Option<MainPort> {
        let main = self.hints().choose_main_port(
            listeners,
            self.health_state.main.filter(|_| self.is_ready()),
        )?;
        Some(MainPort {
            socket: main.listener.socket.clone(),
            reason: main.reason,
            since: main.listener.since,
            settled: main.settled,
        })
    }

    /// The main port among the sockets that count.
    pub(super) fn main_port(&self) -> Option<MainPort> {
        self.choose_main_port(&self.usable())
    }

    fn hints(&self) -> PortHints<'_> {
        let evidence = self.output.evidence();
        PortHints {
            requested: self.rule.requested_port,
            default: self.rule.default_port,
            addresses: &evidence.addresses,
            first_address_at: evidence.first_address_at,
            in_use: evidence.conflict.is_some(),
        }
    }

    /// The protocol of a port, as far as detected.
    pub(super) fn protocol(&self, port: u16) -> Option<PortProtocol> {
        let (of, protocol) = self.known_protocol?;
        (of == port).then_some(protocol)
    }

    /// Whether a port speaks TLS, as far as known.
    pub(super) fn tls(&self, port: u16) -> Option<bool> {
        match self.protocol(port)? {
            PortProtocol::Http { tls } => Some(tls),
            PortProtocol::Other => None,
        }
    }

    /// Whether to try TLS first at a port.
    pub(super) fn tls_first(&self, port: u16) -> bool {
        let addresses = &self.output.evidence().addresses;
        let https = || {
            addresses
                .iter()
                .find(|it| it.port == port)
                .and_then(|it| it.https)
        };
        self.tls(port).or_else(https).unwrap_or(false)
    }

    /// Records the protocol of a port.
    pub(super) fn set_protocol(&mut self, port: u16, protocol: PortProtocol) {
        self.known_protocol = Some((port, protocol));
    }

    /// Whether a URL to this port is useful to people: it speaks HTTP, or where it was not probed,
    /// the program itself printed a URL.
    fn has_url(&self, port: u16) -> bool {
        if is_debug_port(port) && self.rule.requested_port != Some(port) {
            return false;
        }
        match self.protocol(port) {
            Some(protocol) => protocol != PortProtocol::Other,
            None => !self.probes_main_port() && self.prints_url(port),
        }
    }

    /// Whether a URL of this port was printed.
    pub(super) fn prints_url(&self, port: u16) -> bool {
        let mut addresses = self.output.evidence().addresses.iter();
        addresses.any(|it| it.port == port && it.https.is_some() && it.weight <= AddressWeight::Url)
    }

    /// Publishes the ports where they changed.
    pub(super) fn publish_ports(&mut self, events: &mut Vec<ReadinessEvent>) {
        let main = self
            .main_port()
            .or_else(|| self.choose_main_port(&self.listeners.all().collect::<Vec<_>>()));
        // Another port does not replace the one that was ready.
        let is_main =
            |port: u16| self.health_state.main.is_none_or(|it| it == port) || !self.is_ready();
        let address = main.map(|it| it.socket.address);
        let address = address.filter(|it| is_main(it.port()));
        let tls = address.and_then(|it| self.tls(it.port()));
        let url = address
            .filter(|it| self.has_url(it.port()))
            .map(|it| self.hints().url(it, tls));
        // A later line that only names this machine differently changes nothing published.
        let keeps_url =
            |it: &&String| self.is_ready() && url.as_ref().is_some_and(|url| is_same_url(it, url));
        let current = PublishedPorts {
            ports: sorted_ports(self.listeners.all(), address, tls == Some(true)),
            url: self
                .published
                .url
                .as_ref()
                .filter(keeps_url)
                .cloned()
                .or(url.clone()),
        };
        // What an earlier engine published stands until a rescan.
        let is_complete = self.has_rescanned() || current.ports.len() >= self.published.ports.len();
        if current != self.published && is_complete {
            self.published = current.clone();
            events.push(ReadinessEvent::Ports {
                ports: current.ports,
                url: current.url,
            });
        }
    }
}
