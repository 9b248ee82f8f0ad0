//! The writer's lease: who may type into a session.
//!
//! While nobody holds it, everybody who sees the session may type. While somebody does, only
//! they may. Leases live in memory: they end with the engine.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ostler_model::{ExecutionId, Principal, Timestamp};
use rustix::rand::{GetRandomFlags, getrandom};
use tokio::sync::watch;

use crate::error::Error;
use crate::execution::ExecutionHandle;

/// The longest name of a holder, in bytes.
pub const LEASE_NAME_BYTES: usize = 256;
/// Random bytes of a lease's id.
const ID_BYTES: usize = 16;
/// Changes that wait to be recorded; beyond them the oldest are dropped.
const CHANGES: usize = 64;

/// The holder of a lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseHolder {
    /// The principal it is held for.
    pub principal: Principal,
    /// A name for people: `ostler attach on pts/3`.
    pub name: String,
    /// When it was acquired.
    pub since: Timestamp,
}

/// The id of one lease; unguessable.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct LeaseId(String);

impl LeaseId {
    fn mint() -> Result<Self, Error> {
        let mut bytes = [0_u8; ID_BYTES];
        let filled = getrandom(&mut bytes[..], GetRandomFlags::empty());
        filled.map_err(|error| Error::Storage {
            what: "cannot read random bytes from",
            path: "/dev/urandom".into(),
            source: error.into(),
        })?;
        Ok(Self(ostler_model::lower_hex(&bytes)))
    }
}

impl std::fmt::Debug for LeaseId {
    /// Without the id, which is a capability.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("LeaseId(..)")
    }
}

/// A lease; released when dropped.
#[derive(Debug)]
pub struct Lease {
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
        // Nobody took it over, and nobody can any more.
        std::future::pending().await
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if self.entry.leases.release(&self.id) {
            self.entry.notify_lease_change();
        }
    }
}

/// The writer's lease of one execution.
#[derive(Debug, Default)]
pub(crate) struct WriterLease(Mutex<WriterLeaseState>);

#[derive(Debug, Default)]
struct WriterLeaseState {
    active: Option<ActiveLease>,
    /// The changes that the driver has not recorded yet, oldest first.
    changes: VecDeque<Option<Principal>>,
}

#[derive(Debug)]
struct ActiveLease {
    id: LeaseId,
    holder: LeaseHolder,
    takeover: watch::Sender<Option<LeaseHolder>>,
}

impl WriterLeaseState {
    fn record_change(&mut self, by: Option<Principal>) {
        if self.changes.len() == CHANGES {
            self.changes.pop_front();
        }
        self.changes.push_back(by);
    }
}

impl WriterLease {
    fn lock(&self) -> MutexGuard<'_, WriterLeaseState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether input is allowed with this lease, or with none.
    pub(crate) fn check(&self, id: ExecutionId, lease: Option<&LeaseId>) -> Result<(), Error> {
        match &self.lock().active {
            Some(active) if lease != Some(&active.id) => Err(leased_error(id, &active.holder)),
            Some(_) | None => Ok(()),
        }
    }

    pub(crate) fn holder(&self) -> Option<LeaseHolder> {
        self.lock().active.as_ref().map(|held| held.holder.clone())
    }

    fn acquire(
        &self,
        id: &LeaseId,
        holder: LeaseHolder,
        take_over: bool,
    ) -> Result<TakeoverReceiver, LeaseOccupied> {
        let mut inner = self.lock();
        match &inner.active {
            Some(active) if !take_over => return Err(LeaseOccupied(active.holder.clone())),
            Some(active) => {
                active.takeover.send_replace(Some(holder.clone()));
            }
            None => {}
        }
        let (sender, receiver) = watch::channel(None);
        inner.record_change(Some(holder.principal.clone()));
        inner.active = Some(ActiveLease {
            id: id.clone(),
            holder,
            takeover: sender,
        });
        Ok(receiver)
    }

    /// Releases the lease; returns whether this one was held.
    fn release(&self, id: &LeaseId) -> bool {
        let mut inner = self.lock();
        let was_active = inner.active.take_if(|held| held.id == *id).is_some();
        if was_active {
            inner.record_change(None);
        }
        was_active
    }

    /// Records that an earlier engine ended before a lease was released.
    pub(crate) fn record_orphaned(&self) {
        self.lock().record_change(None);
    }

    /// The next change that is not recorded yet.
    pub(crate) fn next_change(&self) -> Option<Option<Principal>> {
        self.lock().changes.pop_front()
    }
}

type TakeoverReceiver = watch::Receiver<Option<LeaseHolder>>;

/// Somebody else holds it.
#[derive(Debug)]
struct LeaseOccupied(LeaseHolder);

fn leased_error(id: ExecutionId, holder: &LeaseHolder) -> Error {
    Error::Leased {
        id,
        holder: holder.name.clone(),
    }
}

/// Acquires the lease of an execution.
pub(crate) fn acquire(
    entry: &Arc<ExecutionHandle>,
    holder: LeaseHolder,
    take_over: bool,
) -> Result<Lease, Error> {
    let id = LeaseId::mint()?;
    let acquired = entry.leases.acquire(&id, holder, take_over);
    let takeover = acquired.map_err(|LeaseOccupied(holder)| leased_error(entry.id, &holder))?;
    entry.notify_lease_change();
    Ok(Lease {
        entry: Arc::clone(entry),
        id,
        takeover,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holder(name: &str) -> LeaseHolder {
        LeaseHolder {
            principal: Principal::unix(0),
            name: name.to_owned(),
            since: Timestamp::UNIX_EPOCH,
        }
    }

    #[test]
    fn who_holds_it_types_and_nobody_else() {
        let leases = WriterLease::default();
        let id = ExecutionId::mint();
        let (first, second) = (LeaseId::mint().unwrap(), LeaseId::mint().unwrap());
        assert_ne!(first, second);
        leases.check(id, None).expect("nobody holds it");
        let lost = leases.acquire(&first, holder("one"), false).expect("free");
        leases.check(id, Some(&first)).expect("theirs");
        let refused = leases.check(id, None).expect_err("taken");
        assert_eq!(
            refused.to_string(),
            format!("one types in {} now", id.short())
        );
        let LeaseOccupied(by) = leases
            .acquire(&second, holder("two"), false)
            .expect_err("taken");
        assert_eq!(by.name, "one");
        assert!(lost.borrow().is_none());
        leases.acquire(&second, holder("two"), true).expect("over");
        assert_eq!(
            lost.borrow().as_ref().map(|by| by.name.as_str()),
            Some("two")
        );
        leases.check(id, Some(&first)).expect_err("lost");
        assert!(!leases.release(&first), "it is not theirs any more");
        assert!(leases.release(&second));
        leases
            .check(id, Some(&first))
            .expect("nobody holds it again");
        let recorded: Vec<bool> = std::iter::from_fn(|| leases.next_change())
            .map(|by| by.is_some())
            .collect();
        assert_eq!(recorded, [true, true, false]);
    }

    #[test]
    fn what_nobody_records_is_bounded() {
        let leases = WriterLease::default();
        for _ in 0..CHANGES {
            let id = LeaseId::mint().unwrap();
            leases.acquire(&id, holder("one"), false).expect("free");
            assert!(leases.release(&id));
        }
        assert_eq!(std::iter::from_fn(|| leases.next_change()).count(), CHANGES);
    }
}
