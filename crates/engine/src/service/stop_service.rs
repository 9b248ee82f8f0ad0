//! Stops a service: its dependents first; done only when its ports are free.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ostler_model::{Caller, ExecutionId, Owner, PortHolder, StopReason};
use tokio::time::{Instant, MissedTickBehavior};

use super::caller_services::{name_of, plan_of};
use super::manager::ServiceManager;
use super::ports;
use super::starter::ServiceStarter;
use super::{ServiceInfo, ServiceStopped};
use crate::admission::arguments;
use crate::engine_inner::EngineInner;
use crate::error::Error;
use crate::execution::ExecutionHandle;
use crate::request::StopRequest;
use crate::stop;

/// How long a stop waits for ports after the tree is empty, in milliseconds.
pub(crate) const PORTS_MS: u64 = 5_000;
/// The polling interval of ports, in milliseconds: the kernel does not notify when a foreign socket
/// closes.
const POLL_MS: u64 = 25;

impl ServiceManager {
    /// See [`Engine::stop_service`](crate::Engine::stop_service).
    pub(crate) async fn stop_service(
        &self,
        caller: &Caller,
        name: &str,
        cwd: Option<&Path>,
        request: StopRequest,
    ) -> Result<ServiceStopped, Error> {
        let reason = request.reason.as_ref().map_or(0, String::len);
        arguments::check_length("the reason", reason, arguments::REASON_BYTES)?;
        let context = self.context_at(cwd);
        let starter = ServiceStarter::new(self, caller, &context);
        let can_access = |owner: &Owner| caller.can_access(owner);
        let pending = &self.services.pending;
        let pending = pending.stop(name, context.name_scope(), can_access)?;
        if let Some(pending) = &pending {
            pending.ended().await;
        }
        let found = starter.services().find_reachable(name);
        // After the end of a start that waited, an earlier execution has nothing to be stopped.
        if found.is_some_and(|it| pending.is_none() || !it.is_finished()) {
            let entry = starter.services().get(name)?;
            return Box::pin(starter.stop(&entry, request)).await;
        }
        let service = match (self.service(caller, name, cwd), pending) {
            (Ok(service), _) => service,
            (Err(_), Some(stopped)) => ServiceInfo {
                pending: None,
                ..stopped.info
            },
            (Err(error), None) => return Err(error),
        };
        Ok(ServiceStopped {
            service,
            released: Vec::new(),
            still_held: Vec::new(),
            dependents: Vec::new(),
        })
    }
}

impl ServiceStarter<'_> {
    /// Stops a service, after its dependents.
    pub(crate) async fn stop(
        self,
        entry: &Arc<ExecutionHandle>,
        request: StopRequest,
    ) -> Result<ServiceStopped, Error> {
        let mut dependents = Vec::new();
        for dependent in self.dependents_first(entry) {
            let reason = format!("'{}' is stopped, which it depends on", name_of(entry));
            let order = self.stop_order(&request, Some(reason));
            let grace = self.grace(&dependent, &request);
            stop::stop_and_wait(self.core, &dependent, order, grace).await?;
            dependents.push(name_of(&dependent));
        }
        let own_ports = ports_of(entry);
        let order = self.stop_order(&request, request.reason.clone());
        let grace = self.grace(entry, &request);
        stop::stop_and_wait(self.core, entry, order, grace).await?;
        let still_held = wait_until_free(self.core, &own_ports, PORTS_MS).await;
        let held_ports: Vec<u16> = still_held.iter().map(|it| it.address.port()).collect();
        Ok(ServiceStopped {
            service: self.service_info(entry),
            released: own_ports
                .into_iter()
                .filter(|it| !held_ports.contains(it))
                .collect(),
            still_held: still_held
                .into_iter()
                .map(|holder| ports::resolve_holder(self.core, self.caller, holder).0)
                .collect(),
            dependents,
        })
    }

    /// The running services that depend on it, the outermost first.
    fn dependents_first(self, entry: &Arc<ExecutionHandle>) -> Vec<Arc<ExecutionHandle>> {
        let mut seen = HashSet::from([entry.id]);
        let mut order = Vec::new();
        self.visit(entry, &mut seen, &mut order);
        order
    }

    /// Depth-first over the dependents; each is visited once.
    fn visit(
        self,
        service: &ExecutionHandle,
        seen: &mut HashSet<ExecutionId>,
        order: &mut Vec<Arc<ExecutionHandle>>,
    ) {
        for dependent in self.services().dependents(service) {
            if seen.insert(dependent.id) {
                self.visit(&dependent, seen, order);
                order.push(dependent);
            }
        }
    }

    fn stop_order(self, request: &StopRequest, reason: Option<String>) -> StopReason {
        StopReason::Requested {
            by: self.caller.owner.principal.clone(),
            reason,
            force: request.force,
            interrupt: false,
        }
    }

    fn grace(self, entry: &ExecutionHandle, request: &StopRequest) -> Duration {
        match request.grace {
            _ if request.force => Duration::ZERO,
            Some(grace) => grace,
            None => self.core.grace_of(&entry.spec),
        }
    }
}

/// The host's ports that a service listens on, or was assigned.
pub(crate) fn ports_of(entry: &ExecutionHandle) -> Vec<u16> {
    let live = entry.live.borrow();
    if live.state.is_finished() || ports::has_own_network(&entry.spec) {
        return Vec::new();
    }
    let listening = live.state.ports.iter().map(|port| port.address.port());
    let mut ports: Vec<u16> = listening.chain(plan_of(entry).leased_port).collect();
    ports.sort_unstable();
    ports.dedup();
    ports
}

/// Waits until nobody listens on these ports, at most this many milliseconds; returns the remaining
/// holders.
pub(crate) async fn wait_until_free(
    core: &EngineInner,
    ports: &[u16],
    timeout_ms: u64,
) -> Vec<PortHolder> {
    if ports.is_empty() {
        return Vec::new();
    }
    let deadline = Instant::now() + Duration::from_millis(timeout_ms);
    let mut interval = tokio::time::interval(Duration::from_millis(POLL_MS));
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        interval.tick().await;
        let holders = core.backend.port_holders(ports).await;
        if holders.is_empty() || Instant::now() >= deadline {
            return holders;
        }
    }
}
