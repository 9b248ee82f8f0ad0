//! Ports that are given to services: fixed ones that must be free, and leases.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use ostler_model::{Caller, Holder, IsolationLevel, Network};

use super::compose::Given;
use super::stopping::until_free;
use super::view::name_of;
use super::{PortWish, ServiceError};
use crate::admission::confinement;
use crate::core::Core;
use crate::error::Error;
use crate::request::StartRequest;

/// Ports that are leased unless the settings say otherwise, first and last.
pub(crate) const LEASE_PORTS: (u16, u16) = (20_000, 29_999);
/// How long a port may be held by somebody who is just ending, in milliseconds.
const CLOSING_MS: u64 = 100;
/// Ports that are looked at together.
const AT_ONCE: usize = 64;

/// The port a service gets. Nothing is reserved: the registry knows a lease as soon as the
/// service is in it, and until then the caller holds the book's turn.
pub(crate) async fn give(
    core: &Core,
    caller: &Caller,
    wish: PortWish,
    (request, name): (&StartRequest, &str),
) -> Result<Given, Error> {
    let on_host = shares_ports(core, request)?;
    match wish {
        PortWish::Own => Ok(Given::None),
        PortWish::Fixed(port) => {
            let holders = if on_host {
                until_free(core, &[port], CLOSING_MS).await
            } else {
                Vec::new()
            };
            match holders.into_iter().next() {
                Some(holder) => Err(taken(core, caller, port, holder).into()),
                None => Ok(Given::Fixed(port)),
            }
        }
        PortWish::Lease => {
            let seed = (name, request.cwd.as_bytes());
            lease(core, seed, on_host).await.map(Given::Leased)
        }
    }
}

/// Whether its ports are the host's own.
fn shares_ports(core: &Core, request: &StartRequest) -> Result<bool, Error> {
    let settings = &core.settings.isolation;
    let level = confinement::level(settings, request)?;
    let network = request.confine.network.as_ref();
    let network = network.unwrap_or(&settings.network);
    Ok(level < IsolationLevel::High || *network == Network::Full)
}

/// A free port: begun with at a place of its own for each name and directory, so that a service
/// tends to get the same one again.
async fn lease(core: &Core, seed: (&str, &[u8]), on_host: bool) -> Result<u16, Error> {
    let (first, last) = core.settings.services.lease_ports.unwrap_or(LEASE_PORTS);
    let leased = leased(core);
    let count = usize::from(last.saturating_sub(first)) + 1;
    let mut hasher = DefaultHasher::new();
    seed.hash(&mut hasher);
    let begin = usize::try_from(hasher.finish() % count as u64).unwrap_or(0);
    let all: Vec<u16> = (first..=last).collect();
    let turned = all.iter().cycle().skip(begin).take(all.len());
    let free: Vec<u16> = turned
        .copied()
        .filter(|port| *port > 0 && !leased.contains(port))
        .collect();
    for some in free.chunks(AT_ONCE) {
        if !on_host {
            return Ok(some[0]);
        }
        let held = core.place.holders(some).await;
        let held: HashSet<u16> = held.iter().map(|it| it.address.port()).collect();
        if let Some(port) = some.iter().find(|port| !held.contains(port)) {
            return Ok(*port);
        }
    }
    Err(ServiceError::NoPort { first, last }.into())
}

/// Every port that a living service was given, whosever it is.
fn leased(core: &Core) -> HashSet<u16> {
    let living = core.registry.living();
    living
        .filter_map(|entry| entry.spec.lifetime.plan()?.leased_port)
        .collect()
}

/// Who holds a port, as the caller may know it: what belongs to others is told by pid and name
/// only.
pub(crate) fn taken(core: &Core, caller: &Caller, port: u16, holder: Holder) -> ServiceError {
    let (holder, service) = known(core, caller, holder);
    ServiceError::PortTaken {
        port,
        holder: Box::new(holder),
        service,
    }
}

/// A holder with the execution it belongs to, and the name of the service that is, where the
/// caller sees it.
pub(crate) fn known(core: &Core, caller: &Caller, mut holder: Holder) -> (Holder, Option<String>) {
    let found = match holder.execution {
        Some(id) => core.registry.get(id),
        None => core.registry.living().find(|entry| {
            let live = entry.live.borrow();
            let mut ports = live.state.ports.iter();
            ports.any(|it| it.address.port() == holder.address.port() && Some(it.pid) == holder.pid)
        }),
    };
    match &found {
        Some(entry) if caller.sees(&entry.owner()) => {
            holder.execution = Some(entry.id);
            let service = entry.spec.lifetime.plan().map(|_| name_of(entry));
            (holder, service)
        }
        Some(_) => {
            holder.execution = None;
            holder.command.clear();
            (holder, None)
        }
        None => (holder, None),
    }
}
