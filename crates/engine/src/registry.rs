//! Every execution of a state directory, by id and by short id.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ostler_model::id::IdRef;
use ostler_model::{Caller, ExecutionId, IdError, Owner};
use parking_lot::Mutex;
use tokio::sync::{oneshot, watch};

use crate::admission::arguments::ArgumentError;
use crate::admission::quota::{
    HOLDER_COMMAND_CHARS, HOLDERS_LISTED_MAX, QueuePosition, QuotaExceeded, QuotaHolder, QuotaKey,
    QuotaTable, QuotaTicket,
};
use crate::error::Error;
use crate::execution::ExecutionHandle;
use crate::info::QueuedStart;
use crate::project;
use crate::settings::Quotas;
use crate::start_id::{self, IdHolder};
use crate::summary::{ExecutionSummary, SummaryInterner};

mod ended;

#[derive(Debug)]
pub(crate) struct Registry {
    inner: Mutex<RegistryInner>,
    /// Taken without the lock of `inner`: a summary takes longer than starts may wait for that.
    interner: Mutex<SummaryInterner>,
    running_count: watch::Sender<u64>,
    /// The directory of all executions.
    executions: PathBuf,
}

#[derive(Debug, Clone)]
enum StoredEntry {
    /// In full, as callers get it.
    Full(Arc<ExecutionHandle>),
    /// Ended, and summarized.
    Summary(Arc<ExecutionSummary>),
}

#[derive(Debug)]
struct RegistryInner {
    entries: BTreeMap<ExecutionId, StoredEntry>,
    /// Ended executions kept in full, the most recently used at the end.
    ended: VecDeque<ExecutionId>,
    /// Whether recovery has loaded everything; until then nothing is summarized.
    is_loaded: bool,
    by_short_id: HashMap<u64, ExecutionId>,
    quota: QuotaTable,
    quota_keys: HashMap<ExecutionId, QuotaKey>,
    waiting: HashMap<QuotaTicket, WaitingStart>,
}

/// A start that waits for a slot.
#[derive(Debug)]
struct WaitingStart {
    owner: Owner,
    /// Notifies it that it has a slot.
    granted: oneshot::Sender<()>,
}

/// A start that requested a slot.
#[derive(Debug)]
pub(crate) struct QueueEntry {
    pub(crate) ticket: QuotaTicket,
    /// Where it waits: resolves when it has a slot, closed where it gets none.
    pub(crate) granted: Option<oneshot::Receiver<()>>,
}

impl Registry {
    pub(crate) fn new(quotas: Quotas, executions: PathBuf) -> Self {
        Self {
            inner: Mutex::new(RegistryInner {
                entries: BTreeMap::new(),
                ended: VecDeque::new(),
                is_loaded: false,
                by_short_id: HashMap::new(),
                quota: QuotaTable::new(quotas),
                quota_keys: HashMap::new(),
                waiting: HashMap::new(),
            }),
            interner: Mutex::default(),
            running_count: watch::Sender::new(0),
            executions,
        }
    }

    /// The number of running executions.
    pub(crate) fn running_count(&self) -> watch::Receiver<u64> {
        self.running_count.subscribe()
    }

    /// Requests a slot.
    ///
    /// # Errors
    /// [`Error::Quota`] where the queue is full.
    pub(crate) fn enter_queue(
        &self,
        caller: &Caller,
        quota_key: &QuotaKey,
        chosen_id: Option<ExecutionId>,
    ) -> Result<QueueEntry, Error> {
        let mut inner = self.inner.lock();
        let (ticket, call) = match inner.quota.enter_queue(quota_key, chosen_id) {
            QueuePosition::Granted(ticket) => (ticket, None),
            QueuePosition::Waiting(ticket) => {
                let (granted, call) = oneshot::channel();
                let owner = caller.owner.clone();
                inner
                    .waiting
                    .insert(ticket, WaitingStart { owner, granted });
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

    /// Releases the ticket of a start; one that became an execution keeps its slot.
    pub(crate) fn leave_queue(&self, quota_key: &QuotaKey, ticket: QuotaTicket) {
        let mut inner = self.inner.lock();
        inner.waiting.remove(&ticket);
        let granted = inner.quota.leave_queue(quota_key, ticket);
        inner.notify_granted(granted);
    }

    /// The limit of a quota.
    pub(crate) fn limit(&self, quota_key: &QuotaKey) -> u32 {
        self.inner.lock().quota.limit(quota_key)
    }

    /// Drops every start that waits for a slot of this quota, and that the caller reaches.
    pub(crate) fn drop_waiters(&self, caller: &Caller, quota_key: &QuotaKey) {
        let inner = &mut *self.inner.lock();
        let reached = |waiting: &WaitingStart| caller.can_access(&waiting.owner);
        let dropped = inner.quota.drop_waiters(quota_key, |ticket| {
            inner.waiting.get(&ticket).is_some_and(reached)
        });
        for ticket in dropped {
            inner.waiting.remove(&ticket);
        }
    }

    /// The refusal of a start without a slot, limited to what its caller may see.
    pub(crate) fn quota_exceeded(
        &self,
        caller: &Caller,
        quota_key: &QuotaKey,
        waited: Duration,
    ) -> QuotaExceeded {
        let inner = self.inner.lock();
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

    /// The queue position of the start with this id; none where it does not wait.
    pub(crate) fn queued_start(&self, caller: &Caller, id: ExecutionId) -> Option<QueuedStart> {
        let inner = self.inner.lock();
        let owner = &caller.owner;
        let finite = owner.session.clone();
        let finite = finite.map(|session| QuotaKey::Finite(owner.principal.clone(), session));
        let shares = finite
            .into_iter()
            .chain([QuotaKey::Other(owner.principal.clone())]);
        shares.into_iter().find_map(|share| {
            let ticket = inner.quota.waiting_ticket(&share, id)?;
            let waiting = inner.waiting.get(&ticket)?;
            let ahead = inner.quota.ahead(&share, ticket);
            let ahead = ahead.filter(|_| caller.can_access(&waiting.owner))?;
            let holders = inner.quota.holders(&share);
            Some(QueuedStart {
                ahead,
                running: holders.len(),
                limit: inner.quota.limit(&share),
                holders: inner.visible_holders(caller, &holders),
            })
        })
    }

    /// Turns a start with a slot into an execution, with the id that the client chose or a new one
    /// whose short form is free.
    pub(crate) fn reserve_id(
        &self,
        quota_key: QuotaKey,
        ticket: QuotaTicket,
        chosen_id: Option<ExecutionId>,
    ) -> Result<ExecutionId, Error> {
        let mut inner = self.inner.lock();
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

    /// What holds the id that a client chose for a start; where that is an execution of its own,
    /// the handle.
    pub(crate) fn id_holder(
        &self,
        caller: &Caller,
        id: ExecutionId,
    ) -> (IdHolder, Option<Arc<ExecutionHandle>>) {
        let (entry, taken) = {
            let mut inner = self.inner.lock();
            let entry = self.load_full(&mut inner, id).map(|(entry, _)| entry);
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

    /// Releases an id whose execution was never created.
    pub(crate) fn forget(&self, id: ExecutionId) {
        let mut inner = self.inner.lock();
        inner.by_short_id.remove(&id.short_bits());
        self.release(&mut inner, id);
    }

    /// Inserts an execution; with `quota_key` where recovery found it running.
    pub(crate) fn insert(&self, entry: Arc<ExecutionHandle>, quota_key: Option<QuotaKey>) {
        let mut inner = self.inner.lock();
        let id = entry.id;
        inner.by_short_id.insert(id.short_bits(), id);
        inner.entries.insert(id, StoredEntry::Full(entry));
        if let Some(share) = quota_key {
            inner.quota.force_acquire(share.clone(), id);
            inner.quota_keys.insert(id, share);
            self.publish(&inner);
        }
    }

    /// Releases the slot of an execution that has ended.
    pub(crate) fn on_finished(&self, id: ExecutionId) {
        self.release(&mut self.inner.lock(), id);
    }

    /// Moves an execution to another quota.
    pub(crate) fn move_to_quota(&self, id: ExecutionId, to: QuotaKey) {
        let mut inner = self.inner.lock();
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

    /// Removes an ended execution. None when another caller was faster, or it runs.
    pub(crate) fn remove_ended(&self, id: ExecutionId) -> Option<Arc<ExecutionHandle>> {
        let mut inner = self.inner.lock();
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

    /// Looks an execution up, and makes room for it where it was summarized.
    fn look_up(
        &self,
        id: impl FnOnce(&RegistryInner) -> Option<ExecutionId>,
    ) -> Option<Arc<ExecutionHandle>> {
        let (entry, is_restored) = {
            let mut inner = self.inner.lock();
            let id = id(&inner)?;
            self.load_full(&mut inner, id)?
        };
        if is_restored {
            self.summarize_oldest();
        }
        Some(entry)
    }

    /// The handle of an execution, and whether it was summarized and is restored.
    fn load_full(
        &self,
        inner: &mut RegistryInner,
        id: ExecutionId,
    ) -> Option<(Arc<ExecutionHandle>, bool)> {
        let summary = match inner.entries.get(&id)? {
            StoredEntry::Full(entry) => return Some((Arc::clone(entry), false)),
            StoredEntry::Summary(summary) => Arc::clone(summary),
        };
        let entry = summary.restore(&self.executions)?;
        inner
            .entries
            .insert(id, StoredEntry::Full(Arc::clone(&entry)));
        inner.ended.push_back(id);
        Some((entry, true))
    }

    /// Whether an execution with this id exists.
    pub(crate) fn contains(&self, id: ExecutionId) -> bool {
        self.inner.lock().entries.contains_key(&id)
    }

    /// The execution with this id.
    pub(crate) fn get(&self, id: ExecutionId) -> Option<Arc<ExecutionHandle>> {
        self.look_up(|_| Some(id))
    }

    /// The execution with this id or short id, if the caller may see it; unknown and foreign ids
    /// give the same error. One that the caller only sees is told apart.
    pub(crate) fn find(&self, caller: &Caller, id: &str) -> Result<Arc<ExecutionHandle>, Error> {
        let id = match id.parse::<IdRef>() {
            Ok(id) => id,
            Err(IdError::Empty) => return Err(ArgumentError::EmptyId.into()),
            Err(IdError::Malformed(_)) => return Err(Error::NotFound),
        };
        let entry = self.look_up(|inner| match id {
            IdRef::Full(id) => Some(id),
            IdRef::Short(bits) => inner.by_short_id.get(&bits).copied(),
        });
        let entry = entry.ok_or(Error::NotFound)?;
        let owner = entry.owner();
        if caller.can_access(&owner) {
            return Ok(entry);
        }
        Err(project::read_only(caller, &owner).map_or(Error::NotFound, Into::into))
    }

    /// Every execution, newest first; of summarized ones only those that `filter` accepts. They are
    /// restored one at a time, for reading: a caller that changes something looks it up by id.
    pub(crate) fn all_with<F: Fn(&ExecutionSummary) -> bool>(
        &self,
        filter: F,
    ) -> impl Iterator<Item = Arc<ExecutionHandle>> + use<F> {
        let executions = self.executions.clone();
        let known: Vec<StoredEntry> = {
            let inner = self.inner.lock();
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

    /// The running executions, newest first.
    pub(crate) fn running(&self) -> impl Iterator<Item = Arc<ExecutionHandle>> + use<> {
        self.all_with(|_| false)
            .filter(|entry| !entry.is_finished())
    }
}

impl RegistryInner {
    /// Notifies starts that they have a slot. A start that is gone returns it when it leaves.
    fn notify_granted(&mut self, granted: Vec<QuotaTicket>) {
        for ticket in granted {
            if let Some(start) = self.waiting.remove(&ticket) {
                let _unheard = start.granted.send(());
            }
        }
    }

    /// The executions that hold slots, limited to those the caller sees.
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
