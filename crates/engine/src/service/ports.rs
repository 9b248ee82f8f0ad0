//! Ports assigned to services: fixed ports that must be free, and leased ports.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use ostler_model::{Caller, IsolationLevel, NetworkAccess, PortHolder, Spec, visible};

use super::build_request::AssignedPort;
use super::caller_services::name_of;
use super::stop_service::{ports_of, wait_until_free};
use super::{ServiceError, ServiceRequest};
use crate::admission::isolation_level;
use crate::engine_inner::EngineInner;
use crate::error::Error;
use crate::execution::ExecutionHandle;
use crate::request::StartRequest;
use ostler_model::PortRequest;

/// The default range of leased ports, first and last.
pub(crate) const LEASE_PORTS: (u16, u16) = (20_000, 29_999);
/// How long a port may be held by a process that is just ending, in milliseconds.
const CLOSING_MS: u64 = 100;
/// The most ports per query.
const PORTS_PER_QUERY: usize = 64;
/// How many characters of a holder's command are reported.
const COMMAND_CHARS: usize = 200;

/// Assigns the port of a service. Nothing is reserved: the registry holds a lease as soon as it
/// holds the service, and until then the caller holds the admission lock.
pub(crate) async fn assign(
    core: &EngineInner,
    caller: &Caller,
    requested: PortRequest,
    request: &StartRequest,
    name: &str,
) -> Result<AssignedPort, Error> {
    let on_host = shares_host_ports(core, request)?;
    match requested {
        PortRequest::Own => Ok(AssignedPort::None),
        PortRequest::Fixed(port) => {
            let holders = if on_host {
                wait_until_free(core, &[port], CLOSING_MS).await
            } else {
                Vec::new()
            };
            match holders.into_iter().next() {
                Some(holder) => Err(port_taken(core, caller, port, holder).into()),
                None => Ok(AssignedPort::Fixed(port)),
            }
        }
        PortRequest::Lease => {
            let port = lease_port(core, name, request.cwd.as_bytes(), on_host).await?;
            Ok(AssignedPort::Leased(port))
        }
    }
}

/// Refuses a service that is to replace a running one where somebody else holds the port that it
/// requests: the running one is not ended for a start that would fail.
pub(crate) async fn check_replacement(
    core: &EngineInner,
    caller: &Caller,
    service: &ServiceRequest,
    running: &ExecutionHandle,
) -> Result<(), Error> {
    let PortRequest::Fixed(port) = service.port else {
        return Ok(());
    };
    if ports_of(running).contains(&port) || !shares_host_ports(core, &service.start)? {
        return Ok(());
    }
    let mut holders = wait_until_free(core, &[port], CLOSING_MS).await;
    holders.retain(|it| it.execution != Some(running.id));
    match holders.into_iter().next() {
        Some(holder) => Err(port_taken(core, caller, port, holder).into()),
        None => Ok(()),
    }
}

/// Whether it uses the host's network namespace.
fn shares_host_ports(core: &EngineInner, request: &StartRequest) -> Result<bool, Error> {
    let settings = &core.settings.isolation;
    let level = isolation_level::effective_level(settings, request)?;
    let network = request.options.sandbox.network.as_ref();
    let network = network.unwrap_or(&settings.network);
    Ok(match level {
        IsolationLevel::Basic | IsolationLevel::Medium => true,
        IsolationLevel::High => *network == NetworkAccess::Full,
        IsolationLevel::Container => false,
    })
}

/// Whether an execution has a network of its own.
pub(crate) fn has_own_network(spec: &Spec) -> bool {
    let sandbox = spec.policy.confinement.as_ref();
    sandbox.is_some_and(ostler_model::SandboxSpec::has_own_network)
}

/// A free port: the search begins at a number derived from the name and directory, so that a
/// service tends to get the same one again.
async fn lease_port(
    core: &EngineInner,
    name: &str,
    cwd: &[u8],
    on_host: bool,
) -> Result<u16, Error> {
    let (first, last) = core.settings.services.lease_ports.unwrap_or(LEASE_PORTS);
    let taken = leased_ports(core);
    let count = usize::from(last.saturating_sub(first)) + 1;
    let mut hasher = DefaultHasher::new();
    (name, cwd).hash(&mut hasher);
    let offset = usize::try_from(hasher.finish() % count as u64).unwrap_or(0);
    let all: Vec<u16> = (first..=last).collect();
    let rotated = all.iter().cycle().skip(offset).take(all.len());
    let free: Vec<u16> = rotated
        .copied()
        .filter(|port| *port > 0 && !taken.contains(port))
        .collect();
    for batch in free.chunks(PORTS_PER_QUERY) {
        if !on_host {
            return Ok(batch[0]);
        }
        let holders = core.backend.port_holders(batch).await;
        let held_ports: HashSet<u16> = holders.iter().map(|it| it.address.port()).collect();
        if let Some(port) = batch.iter().find(|port| !held_ports.contains(port)) {
            return Ok(*port);
        }
    }
    Err(ServiceError::NoPort { first, last }.into())
}

/// Every port that is assigned to a running service, of any owner.
fn leased_ports(core: &EngineInner) -> HashSet<u16> {
    let living = core.registry.running();
    living
        .filter_map(|entry| entry.spec.lifetime.plan()?.leased_port)
        .collect()
}

/// The error for a taken port, limited to what the caller may see: of foreign processes only the
/// pid and the name.
pub(crate) fn port_taken(
    core: &EngineInner,
    caller: &Caller,
    port: u16,
    holder: PortHolder,
) -> ServiceError {
    let (holder, service) = resolve_holder(core, caller, holder);
    ServiceError::PortTaken {
        port,
        holder: Box::new(holder),
        service,
    }
}

/// A holder with the execution it belongs to, and the name of the service that is, where the
/// caller sees it. The command of an execution is the recorded one: that of its process may have the
/// values of secrets in it.
pub(crate) fn resolve_holder(
    core: &EngineInner,
    caller: &Caller,
    mut holder: PortHolder,
) -> (PortHolder, Option<String>) {
    let found = match holder.execution {
        Some(id) => core.registry.get(id),
        None => core.registry.running().find(|entry| {
            let live = entry.live.borrow();
            let mut ports = live.state.ports.iter();
            ports.any(|it| it.address.port() == holder.address.port() && Some(it.pid) == holder.pid)
        }),
    };
    match &found {
        Some(entry) if caller.can_access(&entry.owner()) => {
            holder.execution = Some(entry.id);
            let command = visible(&entry.spec.command.display()).into_owned();
            holder.command = command.chars().take(COMMAND_CHARS).collect();
            let service = entry.spec.lifetime.plan().map(|_| name_of(entry));
            (holder, service)
        }
        Some(_) => {
            holder.execution = None;
            holder.command.clear();
            (holder, None)
        }
        None => {
            // One of another engine, or one that was removed.
            if holder.execution.is_some() {
                holder.command.clear();
            }
            (holder, None)
        }
    }
}
