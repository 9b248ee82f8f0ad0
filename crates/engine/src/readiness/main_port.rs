//! Which of several ports is the one people mean, and how it is reached.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use ostler_model::Port;

use super::limits::{ASKED_GRACE, DEBUG_ALONE, DEFAULT_GRACE, PORTS_MAX, PRINTED_GRACE};
use super::listeners::Listener;
use super::printed::{Printed, Weight, is_wildcard};
use super::protocols::is_admin_port;
use super::schedule::ms;

/// Ports of debuggers, live reload and hot module replacement.
pub(super) const fn is_debug(port: u16) -> bool {
    matches!(port, 9229..=9239 | 5678 | 35729 | 24678 | 5858 | 2345)
}

/// Why a port is the main one, the best reason first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Reason {
    /// It was asked for.
    Asked,
    /// A URL with it was printed.
    Printed,
    /// It was told in words.
    Told,
    /// Programs of its kind take it.
    Default,
    /// It was opened last.
    Last,
    /// The same, at an address that is neither a wildcard nor loopback.
    LastElsewhere,
    /// It is one of administration or metrics.
    Aside,
    /// There are only debuggers' ports.
    Debug,
}

/// What is known of the main port beside the sockets.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Hints<'a> {
    /// The port asked for.
    pub(super) asked: Option<u16>,
    /// The port its kind takes.
    pub(super) default: Option<u16>,
    /// Addresses that were printed, in that order.
    pub(super) printed: &'a [Printed],
    /// When the first of them was.
    pub(super) printed_at: Duration,
    /// Whether a line said that a port is in use.
    pub(super) in_use: bool,
}

/// A main port.
#[derive(Debug, Clone, Copy)]
pub(super) struct Main<'a> {
    /// Its best socket.
    pub(super) listener: Listener<'a>,
    /// Why it is the main one.
    pub(super) reason: Reason,
    /// Since when it is certain that no better one comes.
    pub(super) settled: Duration,
}

impl Hints<'_> {
    /// Why this socket might be the main one; the smaller second part is the better.
    fn reason(&self, listener: Listener<'_>) -> (Reason, u64) {
        let address = listener.socket.address;
        let port = address.port();
        if self.asked == Some(port) {
            return (Reason::Asked, 0);
        }
        if is_debug(port) && self.default != Some(port) {
            return (Reason::Debug, u64::from(port));
        }
        let told = |weights: &[Weight]| {
            let found = self
                .printed
                .iter()
                .position(|it| it.port == port && weights.contains(&it.weight));
            found.map(|at| at as u64)
        };
        if let Some(at) =
            told(&[Weight::Rule]).or_else(|| Some(told(&[Weight::Url])? + PORTS_MAX as u64))
        {
            return (Reason::Printed, at);
        }
        let last = u64::MAX - listener.socket.inode;
        let aside = is_admin_port(port) || told(&[Weight::Side]).is_some();
        if aside && self.default != Some(port) {
            return (Reason::Aside, last);
        }
        if let Some(at) = told(&[Weight::Words]) {
            return (Reason::Told, at);
        }
        if self.default == Some(port) {
            (Reason::Default, 0)
        } else if address.ip().is_unspecified() || address.ip().is_loopback() {
            (Reason::Last, last)
        } else {
            (Reason::LastElsewhere, last)
        }
    }

    /// The main one of these; `before` is the one so far, kept unless another has been named.
    pub(super) fn choose<'a>(
        &self,
        listeners: &[Listener<'a>],
        before: Option<u16>,
    ) -> Option<Main<'a>> {
        let best = listeners.iter().min_by_key(|it| self.reason(**it))?;
        let on = |port: u16| {
            listeners
                .iter()
                .filter(move |it| it.socket.address.port() == port)
        };
        let kept = before.and_then(|port| on(port).min_by_key(|it| self.reason(**it)));
        let best = match kept {
            Some(kept) => {
                let (reason, better) = (self.reason(*kept).0, self.reason(*best).0);
                let aside = reason >= Reason::Aside && better < Reason::Aside;
                let named = (better <= Reason::Printed && better < reason) || aside;
                if named { best } else { kept }
            }
            None => best,
        };
        let port = best.socket.address.port();
        let listener = self::best(listeners, port)?;
        let reason = self.reason(*best).0;
        let settled = listener.since.max(best.since) + self.grace(reason, listener.since);
        Some(Main {
            listener,
            reason,
            settled,
        })
    }

    /// How long a better port may still come.
    fn grace(&self, reason: Reason, since: Duration) -> Duration {
        let asked = if self.asked.is_some() && !self.in_use {
            ASKED_GRACE
        } else {
            ms(0)
        };
        match reason {
            Reason::Asked | Reason::Printed | Reason::Told => ms(0),
            Reason::Default => asked,
            Reason::Last | Reason::LastElsewhere => {
                let default = if self.default.is_some() {
                    DEFAULT_GRACE
                } else {
                    ms(0)
                };
                asked
                    .max(default)
                    .max(self.promised().saturating_sub(since))
            }
            Reason::Aside => PRINTED_GRACE.max(self.promised().saturating_sub(since)),
            Reason::Debug => DEBUG_ALONE,
        }
    }

    /// Until when a port that was printed may come.
    fn promised(&self) -> Duration {
        let strong =
            |it: &&Printed| it.weight <= Weight::Url && it.is_local() && !is_debug(it.port);
        match self.printed.iter().find(strong) {
            Some(_) => self.printed_at + PRINTED_GRACE,
            None => ms(0),
        }
    }

    /// Where the main port is reached: as it was printed, else from its address.
    pub(super) fn url(&self, address: SocketAddr, tls: Option<bool>) -> String {
        let printed = self
            .printed
            .iter()
            .filter(|it| it.port == address.port() && it.weight <= Weight::Side);
        // One with a token is the way in; else the home page rather than a resource.
        let printed = printed.min_by_key(|it| {
            let plain = !it.path.contains('?');
            (it.weight, !it.is_local(), plain, it.path.len())
        });
        let https = tls.or(printed.and_then(|it| it.https)).unwrap_or(false);
        let host = host(address.ip(), printed.and_then(|it| it.host.as_deref()));
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

/// Whether two URLs differ in a name of this machine at most.
pub(super) fn leads_as(one: &str, other: &str) -> bool {
    let plain = |url: &str| url.replacen("//127.0.0.1", "//localhost", 1);
    plain(one) == plain(other)
}

/// The socket on a port that is probed and told.
pub(super) fn best<'a>(listeners: &[Listener<'a>], port: u16) -> Option<Listener<'a>> {
    let on = listeners
        .iter()
        .filter(|it| it.socket.address.port() == port);
    on.min_by_key(|it| (preference(it.socket.address.ip()), it.socket.inode))
        .copied()
}

/// Which of several sockets on one port is probed and told: IPv4 first, this machine first.
fn preference(ip: IpAddr) -> u8 {
    match (ip.is_loopback() || ip.is_unspecified(), ip.is_ipv4()) {
        (true, true) => 0,
        (true, false) => 1,
        (false, true) => 2,
        (false, false) => 3,
    }
}

/// A host for a URL: the one printed, where it leads to the socket.
fn host(ip: IpAddr, printed: Option<&str>) -> String {
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

/// All ports, the main one first and debuggers' last; one for each address.
pub(super) fn ports<'a>(
    listeners: impl Iterator<Item = Listener<'a>>,
    main: Option<SocketAddr>,
    tls: bool,
) -> Vec<Port> {
    let mut ports: Vec<Port> = listeners
        .map(|it| Port {
            address: it.socket.address,
            pid: it.socket.pid,
            process: it.socket.process.clone(),
            main: main == Some(it.socket.address),
            tls: tls && main == Some(it.socket.address),
        })
        .collect();
    ports.sort_by_key(|it| {
        let port = it.address.port();
        let beside = main.is_none_or(|main| main.port() != port);
        (
            !it.main,
            is_debug(port) && beside,
            beside,
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
