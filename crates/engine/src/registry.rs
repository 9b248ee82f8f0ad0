//! Every execution of a state directory, by id and by short id.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ostler_model::id::IdRef;
use ostler_model::{Caller, ExecutionId, IdError};
use tokio::sync::watch;

use crate::admission::arguments::ArgumentError;
use crate::admission::quota::{Places, Share};
use crate::entry::Entry;
use crate::error::Error;
use crate::settings::Quotas;
use crate::start_id::{self, Holder};

/// The registry.
#[derive(Debug)]
pub(crate) struct Registry {
    inner: Mutex<Inner>,
    activity: watch::Sender<u64>,
    quotas: Quotas,
}

#[derive(Debug, Default)]
struct Inner {
    entries: BTreeMap<ExecutionId, Arc<Entry>>,
    shorts: HashMap<u64, ExecutionId>,
    places: Places,
    shares: HashMap<ExecutionId, Share>,
}

impl Registry {
    pub(crate) fn new(quotas: Quotas) -> Self {
        Self {
            inner: Mutex::default(),
            activity: watch::Sender::new(0),
            quotas,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many run.
    pub(crate) fn activity(&self) -> watch::Receiver<u64> {
        self.activity.subscribe()
    }

    /// Takes a place for the id the client chose, or for a new one whose short form is free.
    pub(crate) fn reserve(
        &self,
        share: Share,
        chosen: Option<ExecutionId>,
    ) -> Result<ExecutionId, Error> {
        let mut inner = self.lock();
        let id = match chosen {
            Some(id) if inner.shorts.contains_key(&id.short_bits()) => {
                return Err(start_id::taken().into());
            }
            Some(id) => id,
            None => loop {
                let id = ExecutionId::mint();
                if !inner.shorts.contains_key(&id.short_bits()) {
                    break id;
                }
            },
        };
        inner.places.take(self.quotas, &share, id)?;
        inner.shorts.insert(id.short_bits(), id);
        inner.shares.insert(id, share);
        self.publish(&inner);
        Ok(id)
    }

    /// What has the id that a client chose for a start; where that is an execution of its own,
    /// the entry.
    pub(crate) fn holder(&self, caller: &Caller, id: ExecutionId) -> (Holder, Option<Arc<Entry>>) {
        let (entry, taken) = {
            let inner = self.lock();
            let entry = inner.entries.get(&id).cloned();
            (entry, inner.shorts.contains_key(&id.short_bits()))
        };
        let principal = &caller.owner.principal;
        let own =
            entry.filter(|it| caller.sees(&it.owner()) && it.spec.owner.principal == *principal);
        match own {
            Some(entry) => (Holder::Own, Some(entry)),
            None if taken => (Holder::Other, None),
            None => (Holder::None, None),
        }
    }

    /// Gives up an id whose execution never came to be.
    pub(crate) fn forget(&self, id: ExecutionId) {
        let mut inner = self.lock();
        inner.shorts.remove(&id.short_bits());
        self.release(&mut inner, id);
    }

    /// Puts an execution in; `share` where recovery found it alive.
    pub(crate) fn insert(&self, entry: Arc<Entry>, alive: Option<Share>) {
        let mut inner = self.lock();
        let id = entry.id;
        inner.shorts.insert(id.short_bits(), id);
        inner.entries.insert(id, entry);
        if let Some(share) = alive {
            inner.places.take_anyway(share.clone(), id);
            inner.shares.insert(id, share);
            self.publish(&inner);
        }
    }

    /// It has ended: its place is free.
    pub(crate) fn finished(&self, id: ExecutionId) {
        self.release(&mut self.lock(), id);
    }

    /// It counts elsewhere from now on.
    pub(crate) fn moved(&self, id: ExecutionId, to: Share) {
        let mut inner = self.lock();
        if let Some(from) = inner.shares.get(&id).cloned() {
            inner.places.give_back(&from, id);
            inner.places.take_anyway(to.clone(), id);
            inner.shares.insert(id, to);
        }
    }

    fn release(&self, inner: &mut Inner, id: ExecutionId) {
        if let Some(share) = inner.shares.remove(&id) {
            inner.places.give_back(&share, id);
            self.publish(inner);
        }
    }

    fn publish(&self, inner: &Inner) {
        let running = inner.places.count() as u64;
        self.activity.send_if_modified(|known| {
            let changed = *known != running;
            *known = running;
            changed
        });
    }

    /// Takes an ended execution out. None when another one was faster, or it runs.
    pub(crate) fn take_ended(&self, id: ExecutionId) -> Option<Arc<Entry>> {
        let mut inner = self.lock();
        let ended = inner.entries.get(&id).is_some_and(|it| it.is_finished());
        if !ended {
            return None;
        }
        inner.shorts.remove(&id.short_bits());
        inner.entries.remove(&id)
    }

    /// The entry with this id.
    pub(crate) fn get(&self, id: ExecutionId) -> Option<Arc<Entry>> {
        self.lock().entries.get(&id).cloned()
    }

    /// The execution a caller means, if it may see it; unknown and foreign are told alike.
    pub(crate) fn find(&self, caller: &Caller, id: &str) -> Result<Arc<Entry>, Error> {
        let entry = {
            let inner = self.lock();
            let id = match id.parse::<IdRef>() {
                Ok(IdRef::Full(id)) => Some(id),
                Ok(IdRef::Short(bits)) => inner.shorts.get(&bits).copied(),
                Err(IdError::Empty) => return Err(ArgumentError::EmptyId.into()),
                Err(IdError::Malformed(_)) => None,
            };
            id.and_then(|id| inner.entries.get(&id).cloned())
        };
        entry
            .filter(|entry| caller.sees(&entry.owner()))
            .ok_or(Error::NotFound)
    }

    /// Every execution, newest first.
    pub(crate) fn all(&self) -> Vec<Arc<Entry>> {
        self.lock().entries.values().rev().cloned().collect()
    }
}
