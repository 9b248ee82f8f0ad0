//! The writers' leases: who may type into a session.
//!
//! While there is no holder, every caller that sees the session may type; otherwise only the
//! holder. Leases are in memory: they end with the engine.

use std::collections::HashMap;

use ostler_model::{ExecutionId, Principal, Timestamp};
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
pub(crate) struct WriterLeases(Mutex<HashMap<ExecutionId, ActiveLease>>);

#[derive(Debug)]
struct ActiveLease {
    id: LeaseId,
    holder: LeaseHolder,
    takeover: watch::Sender<Option<LeaseHolder>>,
}

impl WriterLeases {
    /// Whether input is allowed with this lease, or with none.
    pub(crate) fn check(
        &self,
        execution: ExecutionId,
        lease: Option<&LeaseId>,
    ) -> Result<(), Error> {
        match self.0.lock().get(&execution) {
            Some(active) if lease != Some(&active.id) => {
                Err(leased_error(execution, &active.holder))
            }
            Some(_) | None => Ok(()),
        }
    }

    pub(crate) fn holder(&self, execution: ExecutionId) -> Option<LeaseHolder> {
        let leases = self.0.lock();
        leases.get(&execution).map(|active| active.holder.clone())
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
        match leases.get(&execution) {
            Some(active) if !take_over => return Err(leased_error(execution, &active.holder)),
            Some(active) => {
                active.takeover.send_replace(Some(holder.clone()));
            }
            None => {}
        }
        let (takeover, receiver) = watch::channel(None);
        let active = ActiveLease {
            id: id.clone(),
            holder,
            takeover,
        };
        leases.insert(execution, active);
        record();
        Ok(receiver)
    }

    /// Releases the lease, where this one is held: `record` is then called with the change.
    pub(super) fn release(&self, execution: ExecutionId, id: &LeaseId, record: impl FnOnce()) {
        let mut leases = self.0.lock();
        if leases.get(&execution).is_some_and(|it| it.id == *id) {
            leases.remove(&execution);
            record();
        }
    }
}

pub(super) type TakeoverReceiver = watch::Receiver<Option<LeaseHolder>>;

fn leased_error(id: ExecutionId, holder: &LeaseHolder) -> Error {
    Error::Leased {
        id,
        holder: holder.name.clone(),
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
        leases
            .acquire(id, &second, holder("two"), true, || changes.push("two"))
            .expect("it is taken over");
        assert_eq!(leases.holder(id).map(|by| by.name).as_deref(), Some("two"));
        assert_eq!(
            takeover.borrow().as_ref().map(|by| by.name.as_str()),
            Some("two")
        );
        leases.check(id, Some(&first)).expect_err("it is lost");
        leases.release(id, &first, || changes.push("not theirs any more"));
        leases.release(id, &second, || changes.push("none"));
        leases
            .check(id, Some(&first))
            .expect("nobody holds it again");
        assert_eq!(changes, ["one", "two", "none"]);
        assert!(leases.0.lock().is_empty(), "nothing is kept of it");
    }
}
