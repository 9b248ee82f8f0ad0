//! The writers' leases: who may type into a session.
//!
//! While there is no holder, every caller that sees the session may type; otherwise only the
//! holder. Leases are in memory. One that was held when an earlier engine ended is reserved for its
//! principal until the client is connected again: what others type meanwhile would mix with its input.

use std::collections::HashMap;

use ostler_model::{ExecutionId, Principal, TermSize, Timestamp};
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::error::Error;
use crate::random_hex::random_hex;

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
    pub(crate) fn mint() -> Result<Self, Error> {
        random_hex().map(Self)
    }
}

impl std::fmt::Debug for LeaseId {
    /// Without the id, which is a capability.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("LeaseId(..)")
    }
}

/// The writer's leases of all executions, by execution.
#[derive(Debug, Default)]
pub(crate) struct WriterLeases(Mutex<LeaseTable>);

#[derive(Debug, Default)]
struct LeaseTable {
    active: HashMap<ExecutionId, ActiveLease>,
    /// The principals for whom leases are reserved.
    reserved: HashMap<ExecutionId, Principal>,
}

#[derive(Debug)]
struct ActiveLease {
    id: LeaseId,
    holder: LeaseHolder,
    takeover: watch::Sender<Option<LeaseHolder>>,
    /// The size of the terminal before its first change by this holder, or by one that this holder
    /// took over from.
    size_before: Option<TermSize>,
}

impl WriterLeases {
    /// Whether input is allowed with this lease, or with none.
    pub(crate) fn check(
        &self,
        execution: ExecutionId,
        lease: Option<&LeaseId>,
    ) -> Result<(), Error> {
        let leases = self.0.lock();
        match leases.active.get(&execution) {
            Some(active) if lease == Some(&active.id) => Ok(()),
            Some(active) => Err(leased_error(execution, &active.holder.name)),
            None if leases.reserved.contains_key(&execution) => {
                Err(leased_error(execution, FORMER_HOLDER))
            }
            None => Ok(()),
        }
    }

    pub(crate) fn holder(&self, execution: ExecutionId) -> Option<LeaseHolder> {
        let leases = self.0.lock();
        let active = leases.active.get(&execution);
        active.map(|active| active.holder.clone())
    }

    /// Acquires the lease; with `take_over` also from its holder. `record` is called with the
    /// change, in the order of changes.
    ///
    /// # Errors
    /// [`Error::Leased`] when another caller holds it.
    pub(super) fn acquire(
        &self,
        execution: ExecutionId,
        id: &LeaseId,
        holder: LeaseHolder,
        take_over: bool,
        record: impl FnOnce(),
    ) -> Result<TakeoverReceiver, Error> {
        let mut leases = self.0.lock();
        let reserved_for = leases.reserved.get(&execution);
        if !take_over && reserved_for.is_some_and(|it| *it != holder.principal) {
            return Err(leased_error(execution, FORMER_HOLDER));
        }
        match leases.active.get(&execution) {
            Some(active) if !take_over => {
                return Err(leased_error(execution, &active.holder.name));
            }
            Some(active) => {
                active.takeover.send_replace(Some(holder.clone()));
            }
            None => {}
        }
        leases.reserved.remove(&execution);
        let former = leases.active.get(&execution);
        let size_before = former.and_then(|it| it.size_before);
        let (takeover, receiver) = watch::channel(None);
        let active = ActiveLease {
            id: id.clone(),
            holder,
            takeover,
            size_before,
        };
        leases.active.insert(execution, active);
        record();
        Ok(receiver)
    }

    /// The size to restore when this lease is released; none without a change.
    pub(super) fn size_before(&self, execution: ExecutionId, id: &LeaseId) -> Option<TermSize> {
        let leases = self.0.lock();
        let active = leases.active.get(&execution).filter(|it| it.id == *id);
        active.and_then(|it| it.size_before)
    }

    /// Records the size before a change, where it is the first one.
    pub(super) fn record_size_before(&self, execution: ExecutionId, id: &LeaseId, size: TermSize) {
        let mut leases = self.0.lock();
        if let Some(active) = leases.active.get_mut(&execution)
            && active.id == *id
        {
            active.size_before.get_or_insert(size);
        }
    }

    /// Releases the lease, where this one is held: `record` is then called with the change.
    pub(super) fn release(&self, execution: ExecutionId, id: &LeaseId, record: impl FnOnce()) {
        let mut leases = self.0.lock();
        if leases.active.get(&execution).is_some_and(|it| it.id == *id) {
            leases.active.remove(&execution);
            record();
        }
    }

    /// Reserves the lease of an execution for a principal.
    pub(super) fn reserve(&self, execution: ExecutionId, principal: Principal) {
        self.0.lock().reserved.insert(execution, principal);
    }

    /// Ends a reservation that was not used: `record` is then called with the change.
    pub(super) fn end_reservation(&self, execution: ExecutionId, record: impl FnOnce()) {
        if self.0.lock().reserved.remove(&execution).is_some() {
            record();
        }
    }
}

/// Who holds a reserved lease, for others.
const FORMER_HOLDER: &str = "whoever typed before the daemon restarted";

pub(super) type TakeoverReceiver = watch::Receiver<Option<LeaseHolder>>;

fn leased_error(id: ExecutionId, holder: &str) -> Error {
    Error::Leased {
        id,
        holder: holder.to_owned(),
    }
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
    fn only_the_holder_types() {
        let leases = WriterLeases::default();
        let (id, other) = (ExecutionId::mint(), ExecutionId::mint());
        let (first, second) = (LeaseId::mint().unwrap(), LeaseId::mint().unwrap());
        assert_ne!(first, second);
        let mut changes = Vec::new();
        leases.check(id, None).expect("nobody holds it");
        let takeover = leases
            .acquire(id, &first, holder("one"), false, || changes.push("one"))
            .expect("it is free");
        leases.check(id, Some(&first)).expect("it is theirs");
        leases.check(other, None).expect("nobody holds the other");
        let refused = leases.check(id, None).expect_err("another holds it");
        assert_eq!(
            refused.to_string(),
            format!("one types in {} now", id.short())
        );
        leases
            .acquire(id, &second, holder("two"), false, || changes.push("two"))
            .expect_err("another holds it");
        assert!(takeover.borrow().is_none());
        let (before, between) = (
            TermSize { cols: 80, rows: 24 },
            TermSize { cols: 9, rows: 9 },
        );
        leases.record_size_before(id, &first, before);
        leases
            .acquire(id, &second, holder("two"), true, || changes.push("two"))
            .expect("it is taken over");
        assert_eq!(leases.holder(id).map(|by| by.name).as_deref(), Some("two"));
        assert_eq!(
            takeover.borrow().as_ref().map(|by| by.name.as_str()),
            Some("two")
        );
        leases.check(id, Some(&first)).expect_err("it is lost");
        leases.record_size_before(id, &second, between);
        assert_eq!(leases.size_before(id, &second), Some(before));
        assert_eq!(leases.size_before(id, &first), None);
        leases.release(id, &first, || changes.push("not theirs any more"));
        leases.release(id, &second, || changes.push("none"));
        leases
            .check(id, Some(&first))
            .expect("nobody holds it again");
        assert_eq!(changes, ["one", "two", "none"]);
        assert!(leases.0.lock().active.is_empty(), "nothing is kept of it");
    }

    #[test]
    fn a_reserved_lease_is_that_of_its_principal() {
        let leases = WriterLeases::default();
        let (id, lease) = (ExecutionId::mint(), LeaseId::mint().unwrap());
        let other = LeaseHolder {
            principal: Principal::unix(1),
            ..holder("other")
        };
        leases.reserve(id, Principal::unix(0));
        leases.check(id, None).expect_err("another is awaited");
        assert_eq!(leases.holder(id), None);
        leases
            .acquire(id, &lease, other, false, || {})
            .expect_err("another is awaited");
        let _takeover = leases
            .acquire(id, &lease, holder("one"), false, || {})
            .expect("it is reserved for them");
        leases.end_reservation(id, || panic!("it was used"));
        leases.check(id, Some(&lease)).expect("it is theirs");
        leases.release(id, &lease, || {});
        leases.check(id, None).expect("nobody holds it");
        leases.reserve(id, Principal::unix(0));
        let mut ended = false;
        leases.end_reservation(id, || ended = true);
        assert!(ended);
        leases.check(id, None).expect("nobody holds it");
    }
}
