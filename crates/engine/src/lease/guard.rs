//! A held lease: the right to type into a session, released when dropped.

use std::sync::Arc;

use ostler_model::TermSize;
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
    /// Whether it is not released when dropped.
    is_kept: bool,
}

impl Lease {
    /// The id to send input with.
    #[must_use]
    pub const fn id(&self) -> &LeaseId {
        &self.id
    }

    /// The terminal's size to restore when the lease is released: before the first change by this
    /// holder, or by one that it took over from. None without a change.
    #[must_use]
    pub fn size_before(&self) -> Option<TermSize> {
        self.leases.size_before(self.entry.id, &self.id)
    }

    /// Records the terminal's size before a change of it, where it is the first one.
    pub fn record_size_before(&self, size: TermSize) {
        let leases = &self.leases;
        leases.record_size_before(self.entry.id, &self.id, size);
    }

    /// Keeps the lease until the engine ends: the next engine reserves it for its principal.
    pub fn keep(mut self) {
        self.is_kept = true;
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
        if self.is_kept {
            return;
        }
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
        is_kept: false,
    })
}
