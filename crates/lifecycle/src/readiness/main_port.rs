//! Chooses the main port among several, and the address it is reached at.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use ostler_model::ServicePort;

use super::limits::{DEBUG_ALONE, DEFAULT_GRACE, PORTS_MAX, PRINTED_GRACE, REQUESTED_GRACE};
use super::listeners::ConfirmedListener;
use super::printed_address::{AddressWeight, PrintedAddress, is_wildcard};
use super::protocols::is_admin_port;
use super::scan_schedule::ms;

/// Ports of debuggers, live reload and hot module replacement.
pub(super) const fn is_debug_port(port: u16) -> bool {
    matches!(port, 9229..=9239 | 5678 | 35729 | 24678 | 5858 | 2345)
}

/// Why a port is the main one, in order of precedence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum MainPortReason {
    /// It was requested.
    Requested,
    /// A URL with it was printed.
    PrintedUrl,
    /// It was printed without a URL.
    PrintedPort,
    /// It is the default of its kind.
    Default,
    /// It was opened last.
    Newest,
    /// The same, at an address that is neither a wildcard nor loopback.
    NewestElsewhere,
    /// It is an administration or metrics port.
    Aside,
    /// There are only debuggers' ports.
    Debug,
}

/// The hints about the main port besides the sockets.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct PortHints<'a> {
    /// The requested port.
    pub(super) requested: Option<u16>,
    /// The default port of its kind.
    pub(super) default: Option<u16>,
    /// The printed addresses, in order.
    pub(super) addresses: &'a [PrintedAddress],
    /// When the first of them was printed.
    pub(super) first_address_at: Duration,
    /// Whether a line said that a port is in use.
    pub(super) in_use: bool,
}

/// A main port.
#[derive(Debug, Clone, Copy)]
pub(super) struct MainPortChoice<'a> {
    /// Its preferred socket.
    pub(super) listener: ConfirmedListener<'a>,
    /// Why it is the main one.
    pub(super) reason: MainPortReason,
    /// When it became certain that no better one opens.
    pub(super) settled: Duration,
}

impl PortHints<'_> {
    /// Why this socket might be the main one; a smaller second part is better.
    fn reason(&self, listener: ConfirmedListener<'_>) -> (MainPortReason, u64) {
        let address = listener.socket.address;
        let port = address.port();
        if self.requested == Some(port) {
            return (MainPortReason::Requested, 0);
        }
        if is_debug_port(port) && self.default != Some(port) {
            return (MainPortReason::Debug, u64::from(port));
        }
        let position_of = |weights: &[AddressWeight]| {
            let found = self
                .addresses
                .iter()
                .position(|it| it.port == port && weights.contains(&it.weight));
            found.map(|at| at as u64)
        };
        if let Some(at) = position_of(&[AddressWeight::Rule])
            .or_else(|| Some(position_of(&[AddressWeight::Url])? + PORTS_MAX as u64))
        {
            return (MainPortReason::PrintedUrl, at);
        }
        let newest_first = u64::MAX - listener.socket.inode;
        let aside = is_admin_port(port) || position_of(&[AddressWeight::Side]).is_some();
        if aside && self.default != Some(port) {
            return (MainPortReason::Aside, newest_first);
        }
        if let Some(at) = position_of(&[AddressWeight::Phrase]) {
            return (MainPortReason::PrintedPort, at);
        }
        if self.default == Some(port) {
            (MainPortReason::Default, 0)
        } else if address.ip().is_unspecified() || address.ip().is_loopback() {
            (MainPortReason::Newest, newest_first)
        } else {
            (MainPortReason::NewestElsewhere, newest_first)
        }
    }

    /// Chooses the main port; `current` is the one so far, kept unless another has been named.
    pub(super) fn choose_main_port<'a>(
        &self,
        listeners: &[ConfirmedListener<'a>],
        current: Option<u16>,
    ) -> Option<MainPortChoice<'a>> {
        let best = listeners.iter().min_by_key(|it| self.reason(**it))?;
        let on = |port: u16| {
            listeners
                .iter()
                .filter(move |it| it.socket.address.port() == port)
        };
        let current_best = current.and_then(|port| on(port).min_by_key(|it| self.reason(**it)));
        let best = match current_best {
            Some(current_best) => {
                let (reason, better) = (self.reason(*current_best).0, self.reason(*best).0);
                let aside = reason >= MainPortReason::Aside && better < MainPortReason::Aside;
                let named = (better <= MainPortReason::PrintedUrl && better < reason) || aside;
                if named { best } else { current_best }
            }
            None => best,
        };
        let port = best.socket.address.port();
        let listener = self::preferred_listener(listeners, port)?;
        let reason = self.reason(*best).0;
        let settled = listener.since.max(best.since) + self.grace(reason, listener.since);
        Some(MainPortChoice {
            listener,
            reason,
            settled,
        })
    }

    /// How long a better port may still open.
    fn grace(&self, reason: MainPortReason, since: Duration) -> Duration {
        let requested = if self.requested.is_some() && !self.in_use {
            REQUESTED_GRACE
        } else {
            ms(0)
        };
        match reason {
            MainPortReason::Requested
            | MainPortReason::PrintedUrl
            | MainPortReason::PrintedPort => ms(0),
            MainPortReason::Default => requested,
            MainPortReason::Newest | MainPortReason::NewestElsewhere => {
                let default = if self.default.is_some() {
                    DEFAULT_GRACE
                } else {
                    ms(0)
                };
                requested
                    .max(default)
                    .max(self.promised_until().saturating_sub(since))
            }
            MainPortReason::Aside => PRINTED_GRACE.max(self.promised_until().saturating_sub(since)),
            MainPortReason::Debug => DEBUG_ALONE,
        }
    }

    /// Until when a printed port may open.
    fn promised_until(&self) -> Duration {
        let strong = |it: &&PrintedAddress| {
            it.weight <= AddressWeight::Url && it.is_local() && !is_debug_port(it.port)
        };
        match self.addresses.iter().find(strong) {
            Some(_) => self.first_address_at + PRINTED_GRACE,
            None => ms(0),
        }
    }

    /// The URL of the main port: as printed, else from its address.
    pub(super) fn url(&self, address: SocketAddr, tls: Option<bool>) -> String {
        let printed = self
            .addresses
            .iter()
            .filter(|it| it.port == address.port() && it.weight <= AddressWeight::Side);
        // A URL with a token is the entry; else the home page rather than a resource.
        let printed = printed.min_by_key(|it| {
            let plain = !it.path.contains('?');
            (it.weight, !it.is_local(), plain, it.path.len())
        });
        let https = tls.or(printed.and_then(|it| it.https)).unwrap_or(false);
        let host = url_host(address.ip(), printed.and_then(|it| it.host.as_deref()));
        let scheme = if https { "https" } else { "http" };
        let path = printed.map_or("", |it| it.path.as_str());
        let slash = if path.starts_with('/') { "" } else { "/" };
        let port = address.port();
        if port == if https { 443 } else { 80 } {
            return format!("{scheme}://{host}{slash}{path}");
        }
        format!("{scheme}://{host}:{port}{slash}{path}")
    }
}

/// Whether two URLs differ at most in a name of this machine.
pub(super) fn is_same_url(one: &str, other: &str) -> bool {
    let plain = |url: &str| url.replacen("//127.0.0.1", "//localhost", 1);
    plain(one) == plain(other)
}

/// The socket on a port that is probed and published.
pub(super) fn preferred_listener<'a>(
    listeners: &[ConfirmedListener<'a>],
    port: u16,
) -> Option<ConfirmedListener<'a>> {
    let on = listeners
        .iter()
        .filter(|it| it.socket.address.port() == port);
    on.min_by_key(|it| (preference(it.socket.address.ip()), it.socket.inode))
        .copied()
}

/// The preference among several sockets on one port: IPv4 first, loopback first.
fn preference(ip: IpAddr) -> u8 {
    match (ip.is_loopback() || ip.is_unspecified(), ip.is_ipv4()) {
        (true, true) => 0,
        (true, false) => 1,
        (false, true) => 2,
        (false, false) => 3,
    }
}

/// The host of a URL: the printed one, where it leads to the socket.
fn url_host(ip: IpAddr, printed: Option<&str>) -> String {
    let only_six = matches!(ip, IpAddr::V6(ip) if ip.is_loopback());
    match printed {
        Some(host) if !is_wildcard(host) && !only_six => {
            if host.contains(':') {
                format!("[{host}]")
            } else {
                host.to_owned()
            }
        }
        Some(_) | None => match ip {
            IpAddr::V6(_) if only_six => "[::1]".to_owned(),
            ip if ip.is_loopback() || ip.is_unspecified() => "localhost".to_owned(),
            IpAddr::V4(ip) => ip.to_string(),
            IpAddr::V6(ip) => format!("[{ip}]"),
        },
    }
}

/// All ports, the main one first and debuggers' last; one entry for each address.
pub(super) fn sorted_ports<'a>(
    listeners: impl Iterator<Item = ConfirmedListener<'a>>,
    main: Option<SocketAddr>,
    tls: bool,
) -> Vec<ServicePort> {
    let mut ports: Vec<ServicePort> = listeners
        .map(|it| ServicePort {
            address: it.socket.address,
            pid: it.socket.pid,
            process: it.socket.process.clone(),
            main: main == Some(it.socket.address),
            tls: tls && main == Some(it.socket.address),
        })
        .collect();
    ports.sort_by_key(|it| {
        let port = it.address.port();
        let is_secondary = main.is_none_or(|main| main.port() != port);
        (
            !it.main,
            is_debug_port(port) && is_secondary,
            is_secondary,
            it.address,
            it.pid,
        )
    });
    ports.dedup_by_key(|it| it.address);
    ports.truncate(PORTS_MAX);
    ports
}

#[cfg(test)]
#[path = "main_port_tests.rs"]
mod tests;
