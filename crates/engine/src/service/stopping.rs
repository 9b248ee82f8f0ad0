//! Stopping: those that depend on it first, and not done before its ports are free (E8).

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use ostler_model::{ExecutionId, Holder, StopOrder};
use tokio::time::{Instant, MissedTickBehavior};

use super::ServiceStopped;
use super::clerk::Clerk;
use super::ports;
use super::view::{name_of, plan_of};
use crate::core::Core;
use crate::entry::Entry;
use crate::error::Error;
use crate::request::StopRequest;
use crate::stop;

/// How long a stop waits for ports after the tree is empty, in milliseconds.
pub(crate) const PORTS_MS: u64 = 5_000;
/// Between two looks at them, in milliseconds: nothing tells when a foreign socket closes.
const LOOK_MS: u64 = 25;

impl Clerk<'_> {
    /// Stops a service and before it those that depend on it.
    pub(crate) async fn stop(
        self,
        entry: &Arc<Entry>,
        request: StopRequest,
    ) -> Result<ServiceStopped, Error> {
        let mut dependents = Vec::new();
        for needed in self.dependents_first(entry) {
            let reason = format!("'{}' is stopped, which it depends on", name_of(entry));
            let order = self.order(&request, Some(reason));
            stop::carry_out(self.core, &needed, order, self.grace(&request)).await?;
            dependents.push(name_of(&needed));
        }
        let held = ports_of(entry);
        let order = self.order(&request, request.reason.clone());
        stop::carry_out(self.core, entry, order, self.grace(&request)).await?;
        let still_held = until_free(self.core, &held, PORTS_MS).await;
        let taken: Vec<u16> = still_held.iter().map(|it| it.address.port()).collect();
        Ok(ServiceStopped {
            service: self.told(entry),
            released: held.into_iter().filter(|it| !taken.contains(it)).collect(),
            still_held: still_held
                .into_iter()
                .map(|holder| ports::known(self.core, self.caller, holder).0)
                .collect(),
            dependents,
        })
    }

    /// Living services that depend on it, the outermost first.
    fn dependents_first(self, entry: &Arc<Entry>) -> Vec<Arc<Entry>> {
        let mut seen = HashSet::from([entry.id]);
        let mut order = Vec::new();
        self.visit(entry, &mut seen, &mut order);
        order
    }

    /// As deep as services depend on each other; each is visited once.
    fn visit(self, needed: &Entry, seen: &mut HashSet<ExecutionId>, order: &mut Vec<Arc<Entry>>) {
        for dependent in self.view().dependents(needed) {
            if seen.insert(dependent.id) {
                self.visit(&dependent, seen, order);
                order.push(dependent);
            }
        }
    }

    fn order(self, request: &StopRequest, reason: Option<String>) -> StopOrder {
        StopOrder::Requested {
            by: self.caller.owner.principal.clone(),
            reason,
            force: request.force,
        }
    }

    fn grace(self, request: &StopRequest) -> Duration {
        match request.grace {
            _ if request.force => Duration::ZERO,
            Some(grace) => grace,
            None => self.core.settings.grace,
        }
    }
}

/// The host's ports a service listens on, or was given.
pub(crate) fn ports_of(entry: &Entry) -> Vec<u16> {
    let live = entry.live.borrow();
    if live.state.is_finished() || is_apart(entry) {
        return Vec::new();
    }
    let listening = live.state.ports.iter().map(|port| port.address.port());
    let mut ports: Vec<u16> = listening.chain(plan_of(entry).leased_port).collect();
    ports.sort_unstable();
    ports.dedup();
    ports
}

/// Whether its ports are not the host's.
fn is_apart(entry: &Entry) -> bool {
    let walls = entry.spec.policy.confinement.as_ref();
    walls.is_some_and(|it| it.network != ostler_model::Network::Full)
}

/// Waits until nobody listens on these ports, at most so many milliseconds; who does then.
pub(crate) async fn until_free(core: &Core, ports: &[u16], at_most_ms: u64) -> Vec<Holder> {
    if ports.is_empty() {
        return Vec::new();
    }
    let end = Instant::now() + Duration::from_millis(at_most_ms);
    let mut looks = tokio::time::interval(Duration::from_millis(LOOK_MS));
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        looks.tick().await;
        let held = core.place.holders(ports).await;
        if held.is_empty() || Instant::now() >= end {
            return held;
        }
    }
}
