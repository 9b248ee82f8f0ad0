//! Leases that were held when an earlier engine ended.

use std::sync::Arc;
use std::time::Duration;

use ostler_model::Principal;
use tokio::time::Instant;

use super::table::WriterLeases;
use crate::engine_inner::EngineInner;
use crate::execution::ExecutionHandle;

/// How long a lease stays reserved for a client that has to connect again, in milliseconds.
const RECONNECT_MS: u64 = 10_000;

/// A lease that an earlier engine granted.
#[derive(Debug)]
pub(crate) struct FormerLease {
    pub(crate) entry: Arc<ExecutionHandle>,
    pub(crate) principal: Principal,
}

/// Reserves leases for their principals, for a while.
pub(crate) fn reserve_leases(
    core: &Arc<EngineInner>,
    leases: &Arc<WriterLeases>,
    former: Vec<FormerLease>,
) {
    if former.is_empty() {
        return;
    }
    for FormerLease { entry, principal } in &former {
        leases.reserve(entry.id, principal.clone());
    }
    let until = Instant::now() + Duration::from_millis(RECONNECT_MS);
    let (leases, closing) = (Arc::clone(leases), core.closing.clone());
    core.tracker.spawn(async move {
        tokio::select! {
            biased;
            () = closing.cancelled() => return,
            () = tokio::time::sleep_until(until) => {}
        }
        for FormerLease { entry, .. } in former {
            leases.end_reservation(entry.id, || entry.record_writer_change(None));
        }
    });
}
