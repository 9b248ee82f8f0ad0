//! Every execution of a state directory, by id and by short id.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ostler_model::id::IdRef;
use ostler_model::{Caller, ExecutionId, IdError};
use tokio::sync::{oneshot, watch};

use crate::admission::arguments::ArgumentError;
use crate::admission::quota::{
    HOLDER_COMMAND_CHARS, HOLDERS_TOLD, Places, QueuePosition, QuotaExceeded, QuotaHolder, Share,
    Ticket,
};
use crate::entry::Entry;
use crate::error::Error;
use crate::quota_queue::QueuedStart;
use crate::settings::Quotas;
use crate::start_id::{self, Holder};
use crate::summary::{SharedParts, Summary};

/// Ended executions that are kept as they are, those that somebody asked for last.
const WHOLE_ENDED: usize = 64;
/// Ended executions that are looked at, with each that ends, whether they can be summed up.
const LOOKED_AT: usize = 4;

/// The registry.
#[derive(Debug)]
pub(crate) struct Registry {
    inner: Mutex<Inner>,
    activity: watch::Sender<u64>,
    /// Where executions are kept.
    executions: PathBuf,
}

/// An execution.
#[derive(Debug, Clone)]
enum StoredEntry {
    /// As whoever asks gets it.
    Whole(Arc<Entry>),
    /// Ended, and summed up.
    Summary(Arc<Summary>),
}

#[derive(Debug)]
struct Inner {
    entries: BTreeMap<ExecutionId, StoredEntry>,
    /// Ended ones that are kept whole, the one asked for last at the end.
    ended: VecDeque<ExecutionId>,
    /// Everything an earlier engine left is in: until then nothing is summed up.
    is_loaded: bool,
    shared: SharedParts,
    shorts: HashMap<u64, ExecutionId>,
    places: Places,
    shares: HashMap<ExecutionId, Share>,
    /// How starts that wait for a place hear that they have one.
    calls: HashMap<Ticket, oneshot::Sender<()>>,
}

/// A start that asked for a place.
#[derive(Debug)]
pub(crate) struct QueueEntry {
    pub(crate) ticket: Ticket,
    /// Where it waits: answered when it has a place, closed where it gets none.
    pub(crate) call: Option<oneshot::Receiver<()>>,
}

impl Registry {
    pub(crate) fn new(quotas: Quotas, executions: PathBuf) -> Self {
        Self {
            inner: Mutex::new(Inner {
                entries: BTreeMap::new(),
                ended: VecDeque::new(),
                is_loaded: false,
                shared: SharedParts::default(),
                shorts: HashMap::new(),
                places: Places::new(quotas),
                shares: HashMap::new(),
                calls: HashMap::new(),
            }),
            activity: watch::Sender::new(0),
            executions,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many run.
    pub(crate) fn activity(&self) -> watch::Receiver<u64> {
        self.activity.subscribe()
    }

    /// Asks for a place.
    ///
    /// # Errors
    /// [`Error::Quota`] where as many starts wait as may.
    pub(crate) fn ask(
        &self,
        caller: &Caller,
        share: &Share,
        chosen: Option<ExecutionId>,
    ) -> Result<QueueEntry, Error> {
        let mut inner = self.lock();
        let (ticket, call) = match inner.places.ask(share, chosen) {
            QueuePosition::Granted(ticket) => (ticket, None),
            QueuePosition::Waits(ticket) => {
                let (sender, call) = oneshot::channel();
                inner.calls.insert(ticket, sender);
                (ticket, Some(call))
            }
            QueuePosition::Full => {
                drop(inner);
                let full = QuotaExceeded {
                    queue_full: true,
                    ..self.no_place(caller, share, Duration::ZERO)
                };
                return Err(Error::Quota(Box::new(full)));
            }
        };
        Ok(QueueEntry { ticket, call })
    }

    /// The start needs no place any more; one that became an execution keeps its own.
    pub(crate) fn leave(&self, share: &Share, ticket: Ticket) {
        let mut inner = self.lock();
        inner.calls.remove(&ticket);
        let granted = inner.places.leave(share, ticket);
        inner.call(granted);
    }

    /// How many executions of a share may run at once.
    pub(crate) fn limit(&self, share: &Share) -> u32 {
        self.lock().places.limit(share)
    }

    /// Nobody waits for a place of this share any more.
    pub(crate) fn dismiss(&self, share: &Share) {
        let mut inner = self.lock();
        for ticket in inner.places.dismiss(share) {
            inner.calls.remove(&ticket);
        }
    }

    /// Why a start gets no place, as its caller may know it.
    pub(crate) fn no_place(
        &self,
        caller: &Caller,
        share: &Share,
        waited: Duration,
    ) -> QuotaExceeded {
        let inner = self.lock();
        let holders = inner.places.holders(share);
        QuotaExceeded {
            running: holders.len(),
            limit: inner.places.limit(share),
            kind: share.kind(),
            holders: inner.told(caller, &holders),
            waited,
            queue_full: false,
        }
    }

    /// How the start with this id waits for a place; none where it does not.
    pub(crate) fn queued(&self, caller: &Caller, id: ExecutionId) -> Option<QueuedStart> {
        let inner = self.lock();
        let owner = &caller.owner;
        let finite = owner.session.clone();
        let finite = finite.map(|session| Share::Finite(owner.principal.clone(), session));
        let shares = finite
            .into_iter()
            .chain([Share::Other(owner.principal.clone())]);
        shares.into_iter().find_map(|share| {
            let ahead = inner.places.ahead(&share, id)?;
            let holders = inner.places.holders(&share);
            Some(QueuedStart {
                ahead,
                running: holders.len(),
                limit: inner.places.limit(&share),
                holders: inner.told(caller, &holders),
            })
        })
    }

    /// Makes the start that has this place an execution, with the id the client chose or a new
    /// one whose short form is free.
    pub(crate) fn reserve(
        &self,
        (share, ticket): (Share, Ticket),
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
        if !inner.places.seat(&share, ticket, id) {
            return Err(Error::Closing);
        }
        inner.shorts.insert(id.short_bits(), id);
        inner.shares.insert(id, share);
        self.publish(&inner);
        Ok(id)
    }

    /// What has the id that a client chose for a start; where that is an execution of its own,
    /// the entry.
    pub(crate) fn holder(&self, caller: &Caller, id: ExecutionId) -> (Holder, Option<Arc<Entry>>) {
        let (entry, taken) = {
            let mut inner = self.lock();
            let entry = self.whole(&mut inner, id);
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
        inner.entries.insert(id, StoredEntry::Whole(entry));
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
            let granted = inner.places.give_back(&from, id);
            inner.places.take_anyway(to.clone(), id);
            inner.shares.insert(id, to);
            inner.call(granted);
        }
    }

    fn release(&self, inner: &mut Inner, id: ExecutionId) {
        if let Some(share) = inner.shares.remove(&id) {
            let granted = inner.places.give_back(&share, id);
            inner.call(granted);
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
        let entry = match inner.entries.get(&id)? {
            StoredEntry::Whole(entry) => Arc::clone(entry),
            StoredEntry::Summary(summary) => summary.entry(&self.executions)?,
        };
        if !entry.is_finished() {
            return None;
        }
        inner.shorts.remove(&id.short_bits());
        inner.entries.remove(&id);
        Some(entry)
    }

    /// It has ended and nothing of it is written any more: sums it up once nobody has it.
    pub(crate) fn ended(&self, id: ExecutionId) {
        self.lock().ended(id);
    }

    /// Everything an earlier engine left is in: sums it up, step by step, as long as `goes_on`.
    pub(crate) fn loaded(&self, goes_on: impl Fn() -> bool) {
        let mut left = {
            let mut inner = self.lock();
            inner.is_loaded = true;
            inner.ended.len()
        };
        while left > 0 && goes_on() {
            self.lock().summarize_oldest(LOOKED_AT);
            left = left.saturating_sub(LOOKED_AT);
        }
    }

    /// The entry as it was, where it was summed up.
    fn whole(&self, inner: &mut Inner, id: ExecutionId) -> Option<Arc<Entry>> {
        let summary = match inner.entries.get(&id)? {
            StoredEntry::Whole(entry) => return Some(Arc::clone(entry)),
            StoredEntry::Summary(summary) => Arc::clone(summary),
        };
        let entry = summary.entry(&self.executions)?;
        inner
            .entries
            .insert(id, StoredEntry::Whole(Arc::clone(&entry)));
        inner.ended(id);
        Some(entry)
    }

    /// Whether there is one with this id.
    pub(crate) fn contains(&self, id: ExecutionId) -> bool {
        self.lock().entries.contains_key(&id)
    }

    /// The entry with this id.
    pub(crate) fn get(&self, id: ExecutionId) -> Option<Arc<Entry>> {
        self.whole(&mut self.lock(), id)
    }

    /// The execution a caller means, if it may see it; unknown and foreign are told alike.
    pub(crate) fn find(&self, caller: &Caller, id: &str) -> Result<Arc<Entry>, Error> {
        let entry = {
            let mut inner = self.lock();
            let id = match id.parse::<IdRef>() {
                Ok(IdRef::Full(id)) => Some(id),
                Ok(IdRef::Short(bits)) => inner.shorts.get(&bits).copied(),
                Err(IdError::Empty) => return Err(ArgumentError::EmptyId.into()),
                Err(IdError::Malformed(_)) => None,
            };
            id.and_then(|id| self.whole(&mut inner, id))
        };
        entry
            .filter(|entry| caller.sees(&entry.owner()))
            .ok_or(Error::NotFound)
    }

    /// Every execution, newest first; of what was summed up only what `wanted` lets through. It
    /// is made again one at a time, for reading: whoever changes something asks for it by its id.
    pub(crate) fn all_with<F: Fn(&Summary) -> bool>(
        &self,
        wanted: F,
    ) -> impl Iterator<Item = Arc<Entry>> + use<F> {
        let executions = self.executions.clone();
        let known: Vec<StoredEntry> = {
            let inner = self.lock();
            let all = inner.entries.values().rev();
            let wanted = all.filter(|it| match it {
                StoredEntry::Whole(_) => true,
                StoredEntry::Summary(summary) => wanted(summary),
            });
            wanted.cloned().collect()
        };
        known.into_iter().filter_map(move |it| match it {
            StoredEntry::Whole(entry) => Some(entry),
            StoredEntry::Summary(summary) => summary.entry(&executions),
        })
    }

    /// Those that live, newest first.
    pub(crate) fn living(&self) -> impl Iterator<Item = Arc<Entry>> + use<> {
        self.all_with(|_| false)
            .filter(|entry| !entry.is_finished())
    }
}

impl Inner {
    /// This one is kept whole for a while; others have been for long enough.
    fn ended(&mut self, id: ExecutionId) {
        self.ended.push_back(id);
        if self.is_loaded {
            self.summarize_oldest(LOOKED_AT);
        }
    }

    /// Looks at so many of those that have been whole for long enough.
    fn summarize_oldest(&mut self, most: usize) {
        for _ in 0..most.min(self.ended.len().saturating_sub(WHOLE_ENDED)) {
            if let Some(id) = self.ended.pop_front() {
                self.summarize(id);
            }
        }
    }

    /// Where somebody has it, it is looked at again later.
    fn summarize(&mut self, id: ExecutionId) {
        let Some(StoredEntry::Whole(entry)) = self.entries.get(&id) else {
            return;
        };
        if Arc::strong_count(entry) > 1 || Arc::weak_count(entry) > 0 {
            self.ended.push_back(id);
            return;
        }
        if let Some(summary) = Summary::of(entry, &mut self.shared) {
            self.entries
                .insert(id, StoredEntry::Summary(Arc::new(summary)));
        }
    }
}

impl Inner {
    /// Tells starts that they have a place. One that is gone gives it back when it leaves.
    fn call(&mut self, granted: Vec<Ticket>) {
        for ticket in granted {
            if let Some(call) = self.calls.remove(&ticket) {
                let _unheard = call.send(());
            }
        }
    }

    /// Holders of places, those that the caller sees.
    fn told(&self, caller: &Caller, holders: &[ExecutionId]) -> Vec<QuotaHolder> {
        let entries = holders.iter().filter_map(|id| match self.entries.get(id)? {
            StoredEntry::Whole(entry) => Some(entry),
            StoredEntry::Summary(_) => None,
        });
        let seen = entries.filter(|entry| caller.sees(&entry.owner()));
        seen.take(HOLDERS_TOLD).map(place_holder).collect()
    }
}

fn place_holder(entry: &Arc<Entry>) -> QuotaHolder {
    let command = entry.spec.command.display();
    let mut short: String = command.chars().take(HOLDER_COMMAND_CHARS).collect();
    if short.len() < command.len() {
        short.push('…');
    }
    QuotaHolder {
        id: entry.id,
        command: short,
    }
}
