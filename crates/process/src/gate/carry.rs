//! One connection out of the cell: judged, dialled, carried.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::time::{Duration, Instant};

use tokio::net::TcpStream;

use super::dns;
use super::ear::FAKES;
use super::log::{Decision, Entry};
use super::names::Host;
use super::outside;
use super::serve::Gate;
use super::splice::{reset, splice};

/// How long a name that was not found is not looked for again, in milliseconds.
const NOT_FOUND_MS: u64 = 2_000;

/// Why a connection is not made.
#[derive(Debug)]
struct Refusal {
    decision: Decision,
    address: Option<IpAddr>,
    reason: String,
}

impl Refusal {
    fn against_the_rules(reason: &str) -> Self {
        Self {
            decision: Decision::Refused,
            address: None,
            reason: reason.to_owned(),
        }
    }

    fn failed(reason: String) -> Self {
        Self {
            decision: Decision::Failed,
            address: None,
            reason,
        }
    }
}

/// What a connection is for.
#[derive(Debug)]
enum Destination {
    /// A name, by its fake address, which stays its own as long as this lives.
    Named(Rc<Host>),
    /// An address itself.
    Address(IpAddr),
    /// A fake address that stands for no name.
    Nothing(Ipv4Addr),
}

impl Destination {
    fn of(gate: &Gate, address: IpAddr) -> Self {
        match address {
            IpAddr::V4(v4) if FAKES.holds(address) => match gate.names.borrow().host_at(v4) {
                Some(host) => Self::Named(host),
                None => Self::Nothing(v4),
            },
            IpAddr::V4(_) | IpAddr::V6(_) => Self::Address(address),
        }
    }

    fn name(&self) -> String {
        match self {
            Self::Named(host) => host.name.clone(),
            Self::Address(address) => address.to_string(),
            Self::Nothing(address) => address.to_string(),
        }
    }
}

/// Carries a connection that was made inside to `wanted`, to its end.
pub(super) async fn carry(gate: Rc<Gate>, inside: TcpStream, wanted: SocketAddr) {
    let destination = Destination::of(&gate, wanted.ip());
    let entry = |address, decision, reason: &str| {
        gate.log.decided(&Entry {
            host: &destination.name(),
            port: Some(wanted.port()),
            address,
            decision,
            reason,
        });
    };
    match connect(&gate, &destination, wanted.port()).await {
        Ok((outside, address)) => {
            entry(Some(address), Decision::Allowed, "in the allow list");
            let carried = splice(inside, outside).await;
            gate.log.count(|counts| {
                counts.bytes_out += carried.out;
                counts.bytes_in += carried.back;
            });
        }
        Err(refusal) => {
            reset(&inside);
            entry(refusal.address, refusal.decision, &refusal.reason);
        }
    }
}

async fn connect(
    gate: &Gate,
    destination: &Destination,
    port: u16,
) -> Result<(TcpStream, IpAddr), Refusal> {
    let addresses = match destination {
        Destination::Nothing(_) => {
            return Err(Refusal::against_the_rules("no name has this address"));
        }
        Destination::Named(host) if !gate.rules.allow_port_of(&host.name, port) => {
            return Err(Refusal::against_the_rules(
                "this port is not in the allow list",
            ));
        }
        Destination::Address(address) if !gate.rules.allow_address(*address, port) => {
            return Err(Refusal::against_the_rules("not in the allow list"));
        }
        Destination::Named(host) => resolve(gate, host).await?,
        Destination::Address(address) => vec![*address],
    };
    let addresses = admitted(gate, &addresses, port)?;
    let dialled = outside::dial(&addresses, port).await;
    dialled.map_err(|error| Refusal {
        address: addresses.first().copied(),
        ..Refusal::failed(format!("cannot connect: {error}"))
    })
}

/// What a name means outside. Asked once at a time and kept for the answer's life, so that
/// a name cannot mean one thing when it is judged and another when it is dialled.
async fn resolve(gate: &Gate, host: &Host) -> Result<Vec<IpAddr>, Refusal> {
    let mut pinned = host.pinned.lock().await;
    if pinned.until.is_none_or(|until| until <= Instant::now()) {
        let limit = Duration::from_millis(outside::RESOLVE_MS);
        let resolving = gate.outside.resolver.resolve(&host.name);
        let found = tokio::time::timeout(limit, resolving).await;
        pinned.addresses = found.ok().and_then(Result::ok).unwrap_or_default();
        let kept = if pinned.addresses.is_empty() {
            Duration::from_millis(NOT_FOUND_MS)
        } else {
            Duration::from_secs(u64::from(dns::TTL_S))
        };
        pinned.until = Instant::now().checked_add(kept);
    }
    if pinned.addresses.is_empty() {
        return Err(Refusal::failed("the name is not found outside".to_owned()));
    }
    Ok(pinned.addresses.clone())
}

/// Those of the addresses that may be dialled; the reason where none is left.
fn admitted(gate: &Gate, addresses: &[IpAddr], port: u16) -> Result<Vec<IpAddr>, Refusal> {
    let mut refused = None;
    let mut admitted = Vec::new();
    for &address in addresses {
        match obstacle(gate, address, port) {
            None => admitted.push(address),
            Some(what) => refused = refused.or(Some((address, what))),
        }
    }
    match refused {
        Some((address, what)) if admitted.is_empty() => Err(Refusal {
            address: Some(address),
            ..Refusal::against_the_rules(&format!("leads to an address that is {what}"))
        }),
        Some(_) | None => Ok(admitted),
    }
}

/// What stands against an address, beside the rules on names.
fn obstacle(gate: &Gate, address: IpAddr, port: u16) -> Option<&'static str> {
    if (gate.outside.permit)(address) {
        return None;
    }
    let range = gate.rules.forbidden(address, port).map(|range| range.name);
    range.or_else(|| {
        // Our own public address is public, but what listens there may trust this machine.
        let own = outside::is_own(address) && !gate.rules.name_single(address, port);
        own.then_some("this machine's own")
    })
}
