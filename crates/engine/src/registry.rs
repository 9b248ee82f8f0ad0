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
    HOLDER_COMMAND_CHARS, HOLDERS_LISTED_MAX, QueuePosition, QuotaExceeded, QuotaHolder, QuotaKey,
    QuotaTable, QuotaTicket,
};
use crate::error::Error;
use crate::execution::ExecutionHandle;
use crate::quota_queue::QueuedStart;
use crate::settings::Quotas;
use crate::start_id::{self, IdHolder};
use crate::summary::{ExecutionSummary, SummaryInterner};

/// Ended executions that are kept as they are, those that somebody asked for last.
const ENDED_FULL_MAX: usize = 64;
/// Ended executions that are looked at, with each that ends, whether they can be summed up.
const SUMMARIZE_BATCH: usize = 4;

#[derive(Debug)]
pub(crate) struct Registry {
    inner: Mutex<RegistryInner>,
    running_count: watch::Sender<u64>,
    /// Where executions are kept.
    executions: PathBuf,
}

#[derive(Debug, Clone)]
enum StoredEntry {
    /// As whoever asks gets it.
    Full(Arc<ExecutionHandle>),
    /// Ended, and summed up.
    Summary(Arc<ExecutionSummary>),
}

#[derive(Debug)]
struct RegistryInner {
    entries: BTreeMap<ExecutionId, StoredEntry>,
    /// Ended ones that are kept whole, the one asked for last at the end.
    ended: VecDeque<ExecutionId>,
    /// Everything an earlier engine left is in: until then nothing is summed up.
    is_loaded: bool,
    shared: SummaryInterner,
    by_short_id: HashMap<u64, ExecutionId>,
    quota: QuotaTable,
    quota_keys: HashMap<ExecutionId, QuotaKey>,
    /// How starts that wait for a place hear that they have one.
    grant_senders: HashMap<QuotaTicket, oneshot::Sender<()>>,
}

/// A start that asked for a place.
#[derive(Debug)]
pub(crate) struct QueueEntry {
    pub(crate) ticket: QuotaTicket,
    /// Where it waits: answered when it has a place, closed where it gets none.
    pub(crate) granted: Option<oneshot::Receiver<()>>,
}

impl Registry {
    pub(crate) fn new(quotas: Quotas, executions: PathBuf) -> Self {
        Self {
            inner: Mutex::new(RegistryInner {
                entries: BTreeMap::new(),
                ended: VecDeque::new(),
                is_loaded: false,
                shared: SummaryInterner::default(),
                by_short_id: HashMap::new(),
                quota: QuotaTable::new(quotas),
                quota_keys: HashMap::new(),
                grant_senders: HashMap::new(),
            }),
            running_count: watch::Sender::new(0),
            executions,
        }
    }

    fn lock(&self) -> MutexGuard<'_, RegistryInner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many run.
    pub(crate) fn running_count(&self) -> watch::Receiver<u64> {
        self.running_count.subscribe()
    }

    /// Asks for a place.
    ///
    /// # Errors
    /// [`Error::Quota`] where as many starts wait as may.
    pub(crate) fn enter_queue(
        &self,
        caller: &Caller,
        quota_key: &QuotaKey,
        chosen_id: Option<ExecutionId>,
    ) -> Result<QueueEntry, Error> {
        let mut inner = self.lock();
        let (ticket, call) = match inner.quota.enter_queue(quota_key, chosen_id) {
            QueuePosition::Granted(ticket) => (ticket, None),
            QueuePosition::Waiting(ticket) => {
                let (sender, call) = oneshot::channel();
                inner.grant_senders.insert(ticket, sender);
                (ticket, Some(call))
            }
            QueuePosition::Full => {
                drop(inner);
                let full = QuotaExceeded {
                    queue_full: true,
                    ..self.quota_exceeded(caller, quota_key, Duration::ZERO)
                };
                return Err(Error::Quota(Box::new(full)));
            }
        };
        Ok(QueueEntry {
            ticket,
            granted: call,
        })
    }

    /// The start needs no place any more; one that became an execution keeps its own.
    pub(crate) fn leave_queue(&self, quota_key: &QuotaKey, ticket: QuotaTicket) {
        let mut inner = self.lock();
        inner.grant_senders.remove(&ticket);
        let granted = inner.quota.leave_queue(quota_key, ticket);
        inner.notify_granted(granted);
    }

    /// How many executions of a share may run at once.
    pub(crate) fn limit(&self, quota_key: &QuotaKey) -> u32 {
        self.lock().quota.limit(quota_key)
    }

    /// Nobody waits for a place of this share any more.
    pub(crate) fn drop_waiters(&self, quota_key: &QuotaKey) {
        let mut inner = self.lock();
        for ticket in inner.quota.drop_waiters(quota_key) {
            inner.grant_senders.remove(&ticket);
        }
    }

    /// Why a start gets no place, as its caller may know it.
    pub(crate) fn quota_exceeded(
        &self,
        caller: &Caller,
        quota_key: &QuotaKey,
        waited: Duration,
    ) -> QuotaExceeded {
        let inner = self.lock();
        let holders = inner.quota.holders(quota_key);
        QuotaExceeded {
            running: holders.len(),
            limit: inner.quota.limit(quota_key),
            kind: quota_key.kind(),
            holders: inner.visible_holders(caller, &holders),
            waited,
            queue_full: false,
        }
    }

    /// How the start with this id waits for a place; none where it does not.
    pub(crate) fn queued_start(&self, caller: &Caller, id: ExecutionId) -> Option<QueuedStart> {
        let inner = self.lock();
        let owner = &caller.owner;
        let finite = owner.session.clone();
        let finite = finite.map(|session| QuotaKey::Finite(owner.principal.clone(), session));
        let shares = finite
            .into_iter()
            .chain([QuotaKey::Other(owner.principal.clone())]);
        shares.into_iter().find_map(|share| {
            let ahead = inner.quota.ahead(&share, id)?;
            let holders = inner.quota.holders(&share);
            Some(QueuedStart {
                ahead,
                running: holders.len(),
                limit: inner.quota.limit(&share),
                holders: inner.visible_holders(caller, &holders),
            })
        })
    }

    /// Makes the start that has this place an execution, with the id the client chose or a new
    /// one whose short form is free.
    pub(crate) fn reserve_id(
        &self,
        (quota_key, ticket): (QuotaKey, QuotaTicket),
        chosen_id: Option<ExecutionId>,
    ) -> Result<ExecutionId, Error> {
        let mut inner = self.lock();
        let id = match chosen_id {
            Some(id) if inner.by_short_id.contains_key(&id.short_bits()) => {
                return Err(start_id::id_in_use_error().into());
            }
            Some(id) => id,
            None => loop {
                let id = ExecutionId::mint();
                if !inner.by_short_id.contains_key(&id.short_bits()) {
                    break id;
                }
            },
        };
        if !inner.quota.assign(&quota_key, ticket, id) {
            return Err(Error::Closing);
        }
        inner.by_short_id.insert(id.short_bits(), id);
        inner.quota_keys.insert(id, quota_key);
        self.publish(&inner);
        Ok(id)
    }

    /// What has the id that a client chose for a start; where that is an execution of its own,
    /// the entry.
    pub(crate) fn id_holder(
        &self,
        caller: &Caller,
        id: ExecutionId,
    ) -> (IdHolder, Option<Arc<ExecutionHandle>>) {
        let (entry, taken) = {
            let mut inner = self.lock();
            let entry = self.load_full(&mut inner, id);
            (entry, inner.by_short_id.contains_key(&id.short_bits()))
        };
        let principal = &caller.owner.principal;
        let own = entry
            .filter(|it| caller.can_access(&it.owner()) && it.spec.owner.principal == *principal);
        match own {
            Some(entry) => (IdHolder::Own, Some(entry)),
            None if taken => (IdHolder::Other, None),
            None => (IdHolder::None, None),
        }
    }

    /// Gives up an id whose execution never came to be.
    pub(crate) fn forget(&self, id: ExecutionId) {
        let mut inner = self.lock();
        inner.by_short_id.remove(&id.short_bits());
        self.release(&mut inner, id);
    }

    /// Puts an execution in; `quota_key` where recovery found it alive.
    pub(crate) fn insert(&self, entry: Arc<ExecutionHandle>, quota_key: Option<QuotaKey>) {
        let mut inner = self.lock();
        let id = entry.id;
        inner.by_short_id.insert(id.short_bits(), id);
        inner.entries.insert(id, StoredEntry::Full(entry));
        if let Some(share) = quota_key {
            inner.quota.force_acquire(share.clone(), id);
            inner.quota_keys.insert(id, share);
            self.publish(&inner);
        }
    }

    /// It has ended: its place is free.
    pub(crate) fn on_finished(&self, id: ExecutionId) {
        self.release(&mut self.lock(), id);
    }

    /// It counts elsewhere from now on.
    pub(crate) fn move_to_quota(&self, id: ExecutionId, to: QuotaKey) {
        let mut inner = self.lock();
        if let Some(from) = inner.quota_keys.get(&id).cloned() {
            let granted = inner.quota.release(&from, id);
            inner.quota.force_acquire(to.clone(), id);
            inner.quota_keys.insert(id, to);
            inner.notify_granted(granted);
        }
    }

    fn release(&self, inner: &mut RegistryInner, id: ExecutionId) {
        if let Some(share) = inner.quota_keys.remove(&id) {
            let granted = inner.quota.release(&share, id);
            inner.notify_granted(granted);
            self.publish(inner);
        }
    }

    fn publish(&self, inner: &RegistryInner) {
        let running = inner.quota.running_count() as u64;
        self.running_count.send_if_modified(|known| {
            let changed = *known != running;
            *known = running;
            changed
        });
    }

    /// Takes an ended execution out. None when another one was faster, or it runs.
    pub(crate) fn remove_ended(&self, id: ExecutionId) -> Option<Arc<ExecutionHandle>> {
        let mut inner = self.lock();
        let entry = match inner.entries.get(&id)? {
            StoredEntry::Full(entry) => Arc::clone(entry),
            StoredEntry::Summary(summary) => summary.restore(&self.executions)?,
        };
        if !entry.is_finished() {
            return None;
        }
        inner.by_short_id.remove(&id.short_bits());
        inner.entries.remove(&id);
        Some(entry)
    }

    /// It has ended and nothing of it is written any more: sums it up once nobody has it.
    pub(crate) fn on_ended(&self, id: ExecutionId) {
        self.lock().on_ended(id);
    }

    /// Everything an earlier engine left is in: sums it up, step by step, as long as `may_continue`.
    pub(crate) fn on_loaded(&self, may_continue: impl Fn() -> bool) {
        let mut remaining = {
            let mut inner = self.lock();
            inner.is_loaded = true;
            inner.ended.len()
        };
        while remaining > 0 && may_continue() {
            self.lock().summarize_oldest(SUMMARIZE_BATCH);
            remaining = remaining.saturating_sub(SUMMARIZE_BATCH);
        }
    }

    /// The entry as it was, where it was summed up.
    fn load_full(
        &self,
        inner: &mut RegistryInner,
        id: ExecutionId,
    ) -> Option<Arc<ExecutionHandle>> {
        let summary = match inner.entries.get(&id)? {
            StoredEntry::Full(entry) => return Some(Arc::clone(entry)),
            StoredEntry::Summary(summary) => Arc::clone(summary),
        };
        let entry = summary.restore(&self.executions)?;
        inner
            .entries
            .insert(id, StoredEntry::Full(Arc::clone(&entry)));
        inner.on_ended(id);
        Some(entry)
    }

    /// Whether there is one with this id.
    pub(crate) fn contains(&self, id: ExecutionId) -> bool {
        self.lock().entries.contains_key(&id)
    }

    /// The entry with this id.
    pub(crate) fn get(&self, id: ExecutionId) -> Option<Arc<ExecutionHandle>> {
        self.load_full(&mut self.lock(), id)
    }

    /// The execution a caller means, if it may see it; unknown and foreign are reported alike.
    pub(crate) fn find(&self, caller: &Caller, id: &str) -> Result<Arc<ExecutionHandle>, Error> {
        let entry = {
            let mut inner = self.lock();
            let id = match id.parse::<IdRef>() {
                Ok(IdRef::Full(id)) => Some(id),
                Ok(IdRef::Short(bits)) => inner.by_short_id.get(&bits).copied(),
                Err(IdError::Empty) => return Err(ArgumentError::EmptyId.into()),
                Err(IdError::Malformed(_)) => None,
            };
            id.and_then(|id| self.load_full(&mut inner, id))
        };
        entry
            .filter(|entry| caller.can_access(&entry.owner()))
            .ok_or(Error::NotFound)
    }

    /// Every execution, newest first; of what was summed up only what `filter` lets through. It
    /// is made again one at a time, for reading: whoever changes something asks for it by its id.
    pub(crate) fn all_with<F: Fn(&ExecutionSummary) -> bool>(
        &self,
        filter: F,
    ) -> impl Iterator<Item = Arc<ExecutionHandle>> + use<F> {
        let executions = self.executions.clone();
        let known: Vec<StoredEntry> = {
            let inner = self.lock();
            let all = inner.entries.values().rev();
            let selected = all.filter(|it| match it {
                StoredEntry::Full(_) => true,
                StoredEntry::Summary(summary) => filter(summary),
            });
            selected.cloned().collect()
        };
        known.into_iter().filter_map(move |it| match it {
            StoredEntry::Full(entry) => Some(entry),
            StoredEntry::Summary(summary) => summary.restore(&executions),
        })
    }

    /// Those that live, newest first.
    pub(crate) fn running(&self) -> impl Iterator<Item = Arc<ExecutionHandle>> + use<> {
        self.all_with(|_| false)
            .filter(|entry| !entry.is_finished())
    }
}

impl RegistryInner {
    /// This one is kept whole for a while; others have been for long enough.
    fn on_ended(&mut self, id: ExecutionId) {
        self.ended.push_back(id);
        if self.is_loaded {
            self.summarize_oldest(SUMMARIZE_BATCH);
        }
    }

    /// Looks at so many of those that have been whole for long enough.
    fn summarize_oldest(&mut self, limit: usize) {
        for _ in 0..limit.min(self.ended.len().saturating_sub(ENDED_FULL_MAX)) {
            if let Some(id) = self.ended.pop_front() {
                self.summarize(id);
            }
        }
    }

    /// Where somebody has it, it is looked at again later.
    fn summarize(&mut self, id: ExecutionId) {
        let Some(StoredEntry::Full(entry)) = self.entries.get(&id) else {
            return;
        };
        if Arc::strong_count(entry) > 1 || Arc::weak_count(entry) > 0 {
            self.ended.push_back(id);
            return;
        }
        if let Some(summary) = ExecutionSummary::from_execution(entry, &mut self.shared) {
            self.entries
                .insert(id, StoredEntry::Summary(Arc::new(summary)));
        }
    }
}

impl RegistryInner {
    /// Tells starts that they have a place. One that is gone gives it back when it leaves.
    fn notify_granted(&mut self, granted: Vec<QuotaTicket>) {
        for ticket in granted {
            if let Some(call) = self.grant_senders.remove(&ticket) {
                let _unheard = call.send(());
            }
        }
    }

    /// Holders of places, those that the caller sees.
    fn visible_holders(&self, caller: &Caller, holders: &[ExecutionId]) -> Vec<QuotaHolder> {
        let entries = holders.iter().filter_map(|id| match self.entries.get(id)? {
            StoredEntry::Full(entry) => Some(entry),
            StoredEntry::Summary(_) => None,
        });
        let visible = entries.filter(|entry| caller.can_access(&entry.owner()));
        visible.take(HOLDERS_LISTED_MAX).map(quota_holder).collect()
    }
}

fn quota_holder(entry: &Arc<ExecutionHandle>) -> QuotaHolder {
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
