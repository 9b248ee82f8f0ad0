//! The allow list: pure decisions on names, ports and addresses.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ostler_model::sandbox_spec::{HostPattern, HostRule};

use crate::netlink::IpNet;

/// Distinct ports a list may name; each is a listening socket.
pub(crate) const PORTS_MAX: usize = 256;

/// The allow list.
#[derive(Debug, Clone, Default)]
pub(crate) struct EgressRules(Vec<HostRule>);

/// A range of addresses that is not part of the public internet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SpecialRange {
    net: IpNet,
    /// Its name in the log.
    pub(crate) name: &'static str,
}

const fn v4(a: u8, b: u8, c: u8, prefix: u8, name: &'static str) -> SpecialRange {
    let address = IpAddr::V4(Ipv4Addr::new(a, b, c, 0));
    let net = IpNet { address, prefix };
    SpecialRange { net, name }
}

const fn v6(high: u16, next: u16, prefix: u8, name: &'static str) -> SpecialRange {
    let address = IpAddr::V6(Ipv6Addr::new(high, next, 0, 0, 0, 0, 0, 0));
    let net = IpNet { address, prefix };
    SpecialRange { net, name }
}

const fn single(address: IpAddr, name: &'static str) -> SpecialRange {
    let prefix = if address.is_ipv4() { 32 } else { 128 };
    let net = IpNet { address, prefix };
    SpecialRange { net, name }
}

/// IPv4 addresses translated by a NAT64 gateway of the host's network (RFC 6052): as public as the
/// embedded address.
const NAT64: IpNet = IpNet {
    address: IpAddr::V6(Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0, 0)),
    prefix: 96,
};

/// The special-purpose address registries of IANA, narrow ranges before those that contain them.
/// The last three cover everything but 2000::/3, the assigned part of IPv6.
const SPECIAL_RANGES: &[SpecialRange] = &[
    single(
        IpAddr::V4(Ipv4Addr::new(169, 254, 169, 254)),
        "cloud metadata",
    ),
    single(
        IpAddr::V4(Ipv4Addr::new(168, 63, 129, 16)),
        "cloud metadata",
    ),
    v4(0, 0, 0, 8, "this network"),
    v4(10, 0, 0, 8, "private"),
    v4(100, 64, 0, 10, "shared by a carrier"),
    v4(127, 0, 0, 8, "loopback"),
    v4(169, 254, 0, 16, "link-local"),
    v4(172, 16, 0, 12, "private"),
    v4(192, 0, 0, 24, "protocol assignments"),
    v4(192, 0, 2, 24, "documentation"),
    v4(192, 88, 99, 24, "6to4 relay"),
    v4(192, 168, 0, 16, "private"),
    v4(198, 18, 0, 15, "benchmarking"),
    v4(198, 51, 100, 24, "documentation"),
    v4(203, 0, 113, 24, "documentation"),
    v4(224, 0, 0, 4, "multicast"),
    v4(240, 0, 0, 4, "reserved"),
    single(IpAddr::V6(Ipv6Addr::UNSPECIFIED), "this host"),
    single(IpAddr::V6(Ipv6Addr::LOCALHOST), "loopback"),
    v6(0xfc00, 0, 7, "private"),
    v6(0xfe80, 0, 10, "link-local"),
    v6(0xff00, 0, 8, "multicast"),
    v6(0x2001, 0, 23, "protocol assignments"),
    v6(0x2001, 0xdb8, 32, "documentation"),
    v6(0x2002, 0, 16, "6to4"),
    v6(0x3fff, 0, 20, "documentation"),
    v6(0, 0, 3, "reserved"),
    v6(0x4000, 0, 2, "reserved"),
    v6(0x8000, 0, 1, "reserved"),
];

impl IpNet {
    pub(crate) fn contains(self, address: IpAddr) -> bool {
        let pattern = HostPattern::Addresses {
            address: self.address,
            prefix: self.prefix,
        };
        pattern.matches_address(address)
    }
}

/// The special range that contains an address, which a name must not resolve to; a NAT64 address
/// counts as the IPv4 address it embeds.
fn special_range(address: IpAddr) -> (IpAddr, Option<SpecialRange>) {
    let effective = match address {
        IpAddr::V6(v6) if NAT64.contains(address) => {
            let [.., a, b, c, d] = v6.octets();
            IpAddr::V4(Ipv4Addr::new(a, b, c, d))
        }
        IpAddr::V4(_) | IpAddr::V6(_) => address,
    };
    let range = SPECIAL_RANGES
        .iter()
        .find(|range| range.net.contains(effective));
    (effective, range.copied())
}

impl EgressRules {
    pub(crate) fn new(rules: Vec<HostRule>) -> Self {
        Self(rules)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Every port that some rule means. [`EgressClient::start`](crate::EgressClient::start) sees to it
    /// that they are [`PORTS_MAX`] at most.
    pub(crate) fn ports(&self) -> BTreeSet<u16> {
        let ports = self.0.iter().flat_map(HostRule::ports);
        ports.copied().collect()
    }

    /// Whether a name, in lower case and without a final dot, may be queried.
    pub(crate) fn allows_name(&self, name: &str) -> bool {
        self.0.iter().any(|rule| rule.host.matches_name(name))
    }

    /// Whether it may be connected to at this port.
    pub(crate) fn allows_port(&self, name: &str, port: u16) -> bool {
        let means = |rule: &HostRule| rule.host.matches_name(name) && rule.ports().contains(&port);
        self.0.iter().any(means)
    }

    /// Whether the rules allow connecting to this address and port; [`EgressRules::denying_range`]
    /// must be checked as well.
    pub(crate) fn allows_address(&self, address: IpAddr, port: u16) -> bool {
        self.matching_nets(address, port).next().is_some()
    }

    /// The special range that forbids this address, unless a rule names a network within that
    /// range. The rule `0.0.0.0/0` means the public internet.
    pub(crate) fn denying_range(&self, address: IpAddr, port: u16) -> Option<SpecialRange> {
        let (effective, range) = special_range(address);
        let range = range?;
        let is_named = self
            .matching_nets(effective, port)
            .any(|net| net.prefix >= range.net.prefix && range.net.contains(net.address));
        (!is_named).then_some(range)
    }

    /// Whether a rule names this one address, not just a network it is in.
    pub(crate) fn names_address(&self, address: IpAddr, port: u16) -> bool {
        let width = if address.is_ipv4() { 32 } else { 128 };
        self.matching_nets(address, port)
            .any(|net| net.prefix == width)
    }

    fn matching_nets(&self, address: IpAddr, port: u16) -> impl Iterator<Item = IpNet> {
        let matches = move |rule: &&HostRule| {
            rule.host.matches_address(address) && rule.ports().contains(&port)
        };
        self.0.iter().filter(matches).filter_map(rule_net)
    }

    /// The networks whose connections are routed to the proxy: all networks of the rules except
    /// loopback, which is the jail's own.
    pub(crate) fn routed_nets(&self) -> Vec<IpNet> {
        let nets = self.0.iter().filter_map(rule_net);
        nets.filter(|net| !net.address.is_loopback()).collect()
    }
}

const fn rule_net(rule: &HostRule) -> Option<IpNet> {
    match rule.host {
        HostPattern::Addresses { address, prefix } => Some(IpNet { address, prefix }),
        HostPattern::Name(_) | HostPattern::Below(_) => None,
    }
}

#[cfg(test)]
#[path = "rules_tests.rs"]
mod tests;
