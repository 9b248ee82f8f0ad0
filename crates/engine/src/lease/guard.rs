//! A held lease: the right to type into a session, released when dropped.

use std::sync::Arc;

use tokio::sync::watch;

use super::table::{LeaseHolder, LeaseId, WriterLeases};
use crate::error::Error;
use crate::execution::ExecutionHandle;

/// The longest name of a holder, in bytes.
pub const LEASE_NAME_BYTES: usize = 256;

/// A lease; released when dropped.
#[derive(Debug)]
pub struct Lease {
    leases: Arc<WriterLeases>,
    entry: Arc<ExecutionHandle>,
    id: LeaseId,
    takeover: watch::Receiver<Option<LeaseHolder>>,
}

impl Lease {
    /// The id to send input with.
    #[must_use]
    pub const fn id(&self) -> &LeaseId {
        &self.id
    }

    /// Waits until another client takes it over; returns the new holder. Cancel safe.
    pub async fn wait_takeover(&mut self) -> LeaseHolder {
        if let Ok(new_holder) = self.takeover.wait_for(Option::is_some).await
            && let Some(new_holder) = new_holder.clone()
        {
            return new_holder;
        }
        // The lease was not taken over, and cannot be any more.
        std::future::pending().await
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let entry = &self.entry;
        let record = || entry.record_writer_change(None);
        self.leases.release(entry.id, &self.id, record);
    }
}

/// Acquires the lease of an execution.
///
/// # Errors
/// [`Error::Leased`] when another caller holds it and `take_over` is false.
pub(crate) fn acquire_lease(
    leases: &Arc<WriterLeases>,
    entry: &Arc<ExecutionHandle>,
    holder: LeaseHolder,
    take_over: bool,
) -> Result<Lease, Error> {
    let id = LeaseId::mint()?;
    let by = holder.principal.clone();
    let record = || entry.record_writer_change(Some(by));
    let takeover = leases.acquire(entry.id, &id, holder, take_over, record)?;
    Ok(Lease {
        leases: Arc::clone(leases),
        entry: Arc::clone(entry),
        id,
        takeover,
    })
}
