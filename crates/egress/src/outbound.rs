//! Handles one outbound connection of the jail: checks it, dials, and relays.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::time::{Duration, Instant};

use tokio::net::TcpStream;

use crate::decision_log::{DecisionEntry, EgressDecision};
use crate::dns;
use crate::fake_ip::NamedHost;
use crate::netns_helper::FAKE_NET;
use crate::proxy::EgressProxy;
use crate::relay::{relay, reset};
use crate::upstream;

/// How long a failed resolution of a name is cached, in milliseconds.
const NEGATIVE_TTL_MS: u64 = 2_000;

/// Why a connection is not made.
#[derive(Debug)]
struct ConnectFailure {
    decision: EgressDecision,
    address: Option<IpAddr>,
    reason: String,
}

impl ConnectFailure {
    fn denied(reason: &str) -> Self {
        Self {
            decision: EgressDecision::Refused,
            address: None,
            reason: reason.to_owned(),
        }
    }

    fn failed(reason: String) -> Self {
        Self {
            decision: EgressDecision::Failed,
            address: None,
            reason,
        }
    }
}

/// What a connection is for.
#[derive(Debug)]
enum Destination {
    /// A name, through its fake address, which stays assigned as long as this lives.
    Named(Rc<NamedHost>),
    /// An address, directly.
    Address(IpAddr),
    /// A fake address that is assigned to no name.
    Unassigned(Ipv4Addr),
}

impl Destination {
    fn from_address(proxy: &EgressProxy, address: IpAddr) -> Self {
        match address {
            IpAddr::V4(v4) if FAKE_NET.contains(address) => {
                match proxy.fake_ips.borrow().host_for(v4) {
                    Some(host) => Self::Named(host),
                    None => Self::Unassigned(v4),
                }
            }
            IpAddr::V4(_) | IpAddr::V6(_) => Self::Address(address),
        }
    }

    fn name(&self) -> String {
        match self {
            Self::Named(host) => host.name.clone(),
            Self::Address(address) => address.to_string(),
            Self::Unassigned(address) => address.to_string(),
        }
    }
}

/// Carries a connection that was made inside to `target`, to its end.
pub(crate) async fn handle_connection(
    proxy: Rc<EgressProxy>,
    client: TcpStream,
    target: SocketAddr,
) {
    let destination = Destination::from_address(&proxy, target.ip());
    let record = |address, decision, reason: &str| {
        proxy.log.record(&DecisionEntry {
            host: &destination.name(),
            port: Some(target.port()),
            address,
            decision,
            reason,
        });
    };
    match connect(&proxy, &destination, target.port()).await {
        Ok((upstream, address)) => {
            record(Some(address), EgressDecision::Allowed, "in the allow list");
            let counts_relayed = relay(client, upstream, &proxy.senders).await;
            proxy.log.count(|counts| {
                counts.bytes_out += counts_relayed.out;
                counts.bytes_in += counts_relayed.back;
            });
        }
        Err(refusal) => {
            reset(&client);
            record(refusal.address, refusal.decision, &refusal.reason);
        }
    }
}

async fn connect(
    proxy: &EgressProxy,
    destination: &Destination,
    port: u16,
) -> Result<(TcpStream, IpAddr), ConnectFailure> {
    let addresses = match destination {
        Destination::Unassigned(_) => {
            return Err(ConnectFailure::denied("no name has this address"));
        }
        Destination::Named(host) if !proxy.rules.allows_port(&host.name, port) => {
            return Err(ConnectFailure::denied("this port is not in the allow list"));
        }
        Destination::Address(address) if !proxy.rules.allows_address(*address, port) => {
            return Err(ConnectFailure::denied("not in the allow list"));
        }
        Destination::Named(host) => resolve(proxy, host).await?,
        Destination::Address(address) => vec![*address],
    };
    let addresses = allowed_addresses(proxy, &addresses, port)?;
    let connected = upstream::dial(&addresses, port).await;
    connected.map_err(|error| ConnectFailure {
        address: addresses.first().copied(),
        ..ConnectFailure::failed(format!("cannot connect: {error}"))
    })
}

/// Resolves a name. One query runs at a time and its result is kept for the time to live of an
/// answer, so that a name cannot resolve to one address when it is checked and another when it is
/// dialled.
async fn resolve(proxy: &EgressProxy, host: &NamedHost) -> Result<Vec<IpAddr>, ConnectFailure> {
    let mut pinned = host.pinned.lock().await;
    if pinned
        .expires_at
        .is_none_or(|until| until <= Instant::now())
    {
        let limit = Duration::from_millis(upstream::RESOLVE_MS);
        let resolution = proxy.upstream.resolver.resolve(&host.name);
        let resolved = tokio::time::timeout(limit, resolution).await;
        pinned.addresses = resolved.ok().and_then(Result::ok).unwrap_or_default();
        let ttl = if pinned.addresses.is_empty() {
            Duration::from_millis(NEGATIVE_TTL_MS)
        } else {
            Duration::from_secs(u64::from(dns::TTL_S))
        };
        pinned.expires_at = Instant::now().checked_add(ttl);
    }
    if pinned.addresses.is_empty() {
        return Err(ConnectFailure::failed(
            "the name is not found outside".to_owned(),
        ));
    }
    Ok(pinned.addresses.clone())
}

/// Those of the addresses that may be dialled; the reason where none is left.
fn allowed_addresses(
    proxy: &EgressProxy,
    addresses: &[IpAddr],
    port: u16,
) -> Result<Vec<IpAddr>, ConnectFailure> {
    let mut denied = None;
    let mut allowed = Vec::new();
    for &address in addresses {
        match denial_reason(proxy, address, port) {
            None => allowed.push(address),
            Some(reason) => denied = denied.or(Some((address, reason))),
        }
    }
    match denied {
        Some((address, what)) if allowed.is_empty() => Err(ConnectFailure {
            address: Some(address),
            ..ConnectFailure::denied(&format!("leads to an address that is {what}"))
        }),
        Some(_) | None => Ok(allowed),
    }
}

/// Why an address may not be connected to, apart from the rules on names.
fn denial_reason(proxy: &EgressProxy, address: IpAddr, port: u16) -> Option<&'static str> {
    if (proxy.upstream.allow_special)(address) {
        return None;
    }
    let range = proxy
        .rules
        .denying_range(address, port)
        .map(|range| range.name);
    range.or_else(|| {
        // Our own public address is public, but what listens there may trust this machine.
        let is_own = upstream::is_own_address(address) && !proxy.rules.names_address(address, port);
        is_own.then_some("this machine's own")
    })
}
