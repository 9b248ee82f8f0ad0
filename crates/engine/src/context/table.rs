//! All contexts by id, and which one each execution uses.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use ostler_journal::Durability;
use ostler_journal::LedgerEntry;
use ostler_lifecycle::context::{
    ContextDecision, ContextInput, ContextLifecycle, ContextRefusal, ContextState,
};
use ostler_model::{Caller, ContextId, ExecutionId, Owner, Principal, Timestamp};
use parking_lot::Mutex;
use tokio::sync::watch;

use super::directory;
use super::execution_uses::ExecutionUse;
use super::ledger_entry::transition_entry;
use super::record::{ContextRecord, StoredStage};
use super::request::ContextKey;
use super::store::ContextStore;
use crate::error::{ContextError, Error};
use crate::execution::ExecutionHandle;
use crate::project;
use crate::settings::Settings;

/// The most executions that an error names.
const NAMED_EXECUTIONS: usize = 5;

/// The contexts of one engine.
#[derive(Debug)]
pub(crate) struct ContextTable {
    store: ContextStore,
    pub(super) contexts: Mutex<Contexts>,
    /// Lets one thread record transitions at a time, in their order.
    recording: Mutex<()>,
    /// Lets one removal be requested at a time.
    requesting_removal: Mutex<()>,
    /// Counts the changes.
    changes: watch::Sender<u64>,
}

#[derive(Debug, Default)]
pub(super) struct Contexts {
    /// At most [`max_per_principal`](crate::ContextSettings::max_per_principal) of each principal.
    pub(super) entries: BTreeMap<ContextId, ContextEntry>,
    /// The executions that use a context.
    pub(super) uses: HashMap<ExecutionId, ExecutionUse>,
    /// What the manager has to do.
    pub(super) work: Vec<ContextWork>,
    /// Transitions that the ledger does not hold yet.
    unrecorded: Vec<LedgerEntry>,
    /// The context whose removal is stored before it is applied.
    announced_removal: Option<ContextId>,
    /// Whether something is to be stored.
    is_changed: bool,
}

/// One context.
#[derive(Debug, Clone)]
pub(super) struct ContextEntry {
    pub(super) record: ContextRecord,
    pub(super) lifecycle: ContextLifecycle,
}

/// What the manager has to do about a context.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ContextWork {
    /// Stop the executions that use it.
    StopUses(ContextId),
    /// End the use of an execution that has ended, unless its overlay has undecided changes.
    CheckOverlay(ExecutionId),
    /// Remove its files.
    RemoveFiles(ContextId),
}

impl ContextTable {
    /// Reads the contexts of the last engine.
    ///
    /// # Errors
    /// [`Error::Storage`].
    pub(crate) fn open(settings: &Settings) -> Result<Self, Error> {
        let (store, records) = ContextStore::open(&settings.state_dir)?;
        let mut contexts = Contexts::default();
        for record in records {
            // Complete once it is known which executions still run: see `adopt`.
            let lifecycle = ContextLifecycle::new(record.idle_timeout);
            let entry = ContextEntry { record, lifecycle };
            contexts.entries.insert(entry.record.id.clone(), entry);
        }
        Ok(Self {
            store,
            contexts: Mutex::new(contexts),
            recording: Mutex::default(),
            requesting_removal: Mutex::default(),
            changes: watch::Sender::new(0),
        })
    }

    /// Continues the contexts of the last engine. These are its executions: some still run, and others
    /// may have ended since.
    pub(super) fn adopt(&self, executions: impl Iterator<Item = Arc<ExecutionHandle>>) {
        let mut contexts = self.contexts.lock();
        let Contexts {
            entries,
            uses,
            work,
            unrecorded: _,
            announced_removal: _,
            is_changed,
        } = &mut *contexts;
        *is_changed = !entries.is_empty();
        let mut running = Vec::new();
        for execution in executions {
            let record = execution.spec.request.as_deref();
            let Some(id) = record.and_then(|it| it.context.as_ref()) else {
                continue;
            };
            let Some(entry) = entries.get_mut(id) else {
                continue;
            };
            let ended_at = execution.live.borrow().state.ended_at;
            if let Some(ended_at) = ended_at {
                entry.record.used_at = entry.record.used_at.max(ended_at);
                let execution_use = ExecutionUse::of(&execution, &entry.record);
                if execution_use.outlives_end {
                    uses.insert(execution.id, execution_use);
                    work.push(ContextWork::CheckOverlay(execution.id));
                }
            } else {
                uses.insert(execution.id, ExecutionUse::of(&execution, &entry.record));
                running.push(execution);
            }
        }
        for (id, entry) in entries {
            let count = uses.values().filter(|it| it.context == *id).count();
            let count = u32::try_from(count).unwrap_or(u32::MAX);
            let is_gone = directory::is_gone(&entry.record);
            let (lifecycle, decision) = entry.record.resume(count, is_gone);
            entry.lifecycle = lifecycle;
            work.extend(work_of(id, &decision));
        }
        drop(contexts);
        self.changed();
        // One may have ended before it was counted.
        for execution in running.iter().filter(|it| it.is_finished()) {
            self.execution_ended(execution.id);
        }
    }

    /// The changes, for whoever waits for one.
    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    pub(super) fn changed(&self) {
        self.changes.send_modify(|count| *count += 1);
    }

    /// Takes what is to be done.
    pub(super) fn take_work(&self) -> Vec<ContextWork> {
        std::mem::take(&mut self.contexts.lock().work)
    }

    /// Passes on the transitions that the ledger does not hold yet. When it returns, all that
    /// happened before are recorded, also those that another thread had begun to.
    pub(super) fn record_transitions(&self, record: impl Fn(&LedgerEntry)) {
        let _recording = self.recording.lock();
        let unrecorded = std::mem::take(&mut self.contexts.lock().unrecorded);
        unrecorded.iter().for_each(record);
    }

    /// Writes the file so that it also survives a power failure.
    ///
    /// # Errors
    /// [`Error::Storage`].
    pub(super) fn store_durably(&self) -> Result<(), Error> {
        self.store.write(Durability::Fsync, || self.records())
    }

    /// Writes the file where something has changed; what cannot be written now is written with the
    /// next change, or once an execution has ended or was removed.
    ///
    /// # Errors
    /// [`Error::Storage`].
    pub(super) fn store_changes(&self) -> Result<(), Error> {
        if !std::mem::take(&mut self.contexts.lock().is_changed) {
            return Ok(());
        }
        let stored = self.store.write(Durability::PageCache, || self.records());
        stored.inspect_err(|_| self.contexts.lock().is_changed = true)
    }

    fn records(&self) -> Vec<ContextRecord> {
        let contexts = self.contexts.lock();
        let stored = contexts.entries.values().filter_map(|entry| {
            let is_announced = contexts.announced_removal.as_ref() == Some(&entry.record.id);
            let stage = StoredStage::of(entry.lifecycle.state())?;
            Some(ContextRecord {
                stage: if is_announced {
                    StoredStage::Stopping
                } else {
                    stage
                },
                ..entry.record.clone()
            })
        });
        stored.collect()
    }

    /// Adds a context that is being created, unless its principal has `limit` already.
    pub(super) fn insert(&self, record: ContextRecord, limit: usize) -> Result<(), ContextError> {
        let mut contexts = self.contexts.lock();
        let principal: &Principal = &record.owner.principal;
        let theirs = contexts.entries.values();
        let count = theirs
            .filter(|it| it.record.owner.principal == *principal)
            .count();
        if count >= limit {
            return Err(ContextError::TooMany { count, limit });
        }
        let lifecycle = ContextLifecycle::new(record.idle_timeout);
        let id = record.id.clone();
        contexts
            .entries
            .insert(id, ContextEntry { record, lifecycle });
        Ok(())
    }

    /// Changes the record of a context.
    pub(super) fn update(&self, id: &ContextId, change: impl FnOnce(&mut ContextRecord)) {
        if let Some(entry) = self.contexts.lock().entries.get_mut(id) {
            change(&mut entry.record);
        }
    }

    /// Applies an input; none where there is no such context.
    pub(super) fn handle(&self, id: &ContextId, input: ContextInput) -> Option<ContextDecision> {
        let is_enter = input == ContextInput::Enter;
        let decision = self.contexts.lock().handle(id, input, None)?;
        if !is_enter {
            self.changed();
        }
        Some(decision)
    }

    /// Applies a request of `by` to remove a context; none where there is no such context. It is
    /// stored first, so that the next engine completes it.
    ///
    /// # Errors
    /// [`Error::Storage`], with nothing changed. Only the removal of a directory goes on where it
    /// cannot be stored: it frees space, and a context without its directory is not continued.
    pub(super) fn request_removal(
        &self,
        id: &ContextId,
        force: bool,
        by: &Owner,
    ) -> Result<Option<ContextDecision>, Error> {
        let _requesting = self.requesting_removal.lock();
        let input = ContextInput::Remove { force };
        let Some(mut entry) = self.get(id) else {
            return Ok(None);
        };
        let expected = entry.lifecycle.handle(Timestamp::now(), input.clone());
        if matches!(expected, ContextDecision::Refuse(_)) {
            return Ok(Some(expected));
        }
        self.contexts.lock().announced_removal = Some(id.clone());
        let stored = self.store_durably();
        let result = match stored {
            Err(error) if entry.record.created.is_none() => Err(error),
            Ok(()) | Err(_) => Ok(self.contexts.lock().handle(id, input, Some(by))),
        };
        {
            let mut contexts = self.contexts.lock();
            contexts.announced_removal = None;
            // A start may have got in before it: it is stored as it is.
            contexts.is_changed = true;
        }
        self.changed();
        result
    }

    /// Has what a full disk refused stored: there may be room again.
    pub(super) fn retry_store(&self) {
        let is_changed = self.contexts.lock().is_changed;
        if is_changed {
            self.changed();
        }
    }

    /// Lets every context end that was idle for its time.
    pub(super) fn tick(&self) {
        let mut contexts = self.contexts.lock();
        let ids: Vec<ContextId> = contexts.entries.keys().cloned().collect();
        for id in ids {
            // What there is to do is in the list of work.
            let _decision = contexts.handle(&id, ContextInput::Tick, None);
        }
        drop(contexts);
        self.changed();
    }

    /// When the next context ends without use.
    pub(super) fn next_deadline(&self) -> Option<Timestamp> {
        let contexts = self.contexts.lock();
        let deadlines = contexts.entries.values();
        deadlines
            .filter_map(|entry| entry.lifecycle.idle_deadline())
            .min()
    }

    /// The warm context of a caller and project.
    pub(super) fn warm(&self, key: &ContextKey) -> Option<ContextEntry> {
        let contexts = self.contexts.lock();
        let mut warm = contexts.entries.values().filter(|entry| {
            let owner = &entry.record.owner;
            entry.lifecycle.state().is_warm()
                && owner.principal == key.principal
                && owner.session == key.session
                && entry.record.project == key.project
        });
        warm.next().cloned()
    }

    /// The context with this id, if the caller may see it.
    ///
    /// # Errors
    /// [`ContextError::NotFound`]; one that the caller only sees is told apart.
    pub(super) fn find(&self, caller: &Caller, id: &ContextId) -> Result<ContextEntry, Error> {
        let contexts = self.contexts.lock();
        let found = contexts.entries.get(id).ok_or(ContextError::NotFound)?;
        let owner = &found.record.owner;
        if caller.can_access(owner) {
            return Ok(found.clone());
        }
        let read_only = project::read_only(caller, owner);
        Err(read_only.map_or(ContextError::NotFound.into(), Into::into))
    }

    /// The context, whoever owns it.
    pub(super) fn get(&self, id: &ContextId) -> Option<ContextEntry> {
        self.contexts.lock().entries.get(id).cloned()
    }

    /// The contexts that the caller may see, newest first.
    pub(super) fn list(&self, caller: &Caller) -> Vec<ContextEntry> {
        let contexts = self.contexts.lock();
        let visible = contexts.entries.values();
        let mut visible: Vec<ContextEntry> = visible
            .filter(|it| caller.can_access(&it.record.owner))
            .cloned()
            .collect();
        visible.sort_by(|one, other| {
            let newest_first = other.record.created_at.cmp(&one.record.created_at);
            newest_first.then_with(|| one.record.id.cmp(&other.record.id))
        });
        visible
    }

    /// The error for a refused request.
    pub(super) fn refusal(&self, id: &ContextId, refusal: ContextRefusal) -> ContextError {
        let id = id.clone();
        match refusal {
            ContextRefusal::Creating => ContextError::NotReady {
                id,
                state: "creating",
            },
            ContextRefusal::Ending => ContextError::NotReady {
                id,
                state: "ending",
            },
            ContextRefusal::InUse => {
                let executions = self.executions(&id).into_iter().take(NAMED_EXECUTIONS);
                ContextError::InUse {
                    executions: executions.map(ExecutionId::short).collect(),
                    id,
                }
            }
            ContextRefusal::Failed => {
                let state = self.get(&id).map(|entry| entry.lifecycle.state().clone());
                let problem = match state {
                    Some(ContextState::Failed { problem }) => problem,
                    Some(_) | None => "they are being removed".to_owned(),
                };
                ContextError::NotRemoved { id, problem }
            }
        }
    }
}

impl Contexts {
    /// Applies an input, and notes what is to be done and to be recorded about it. `by` is who
    /// caused it, where that is not the context's owner.
    pub(super) fn handle(
        &mut self,
        id: &ContextId,
        input: ContextInput,
        by: Option<&Owner>,
    ) -> Option<ContextDecision> {
        let entry = self.entries.get_mut(id)?;
        let now = Timestamp::now();
        match input {
            // An execution that still runs after a crash keeps its context in use.
            ContextInput::Enter => entry.record.used_at = now,
            ContextInput::Leave => {
                entry.record.used_at = now;
                self.is_changed = true;
            }
            ContextInput::Tick => {}
            ContextInput::Created
            | ContextInput::CreationFailed
            | ContextInput::CheckFailed { .. }
            | ContextInput::Remove { .. }
            | ContextInput::Removed
            | ContextInput::RemovalFailed { .. } => self.is_changed = true,
        }
        let before = entry.lifecycle.state().clone();
        let decision = entry.lifecycle.handle(now, input);
        let (record, after) = (&entry.record, entry.lifecycle.state());
        let by = by.unwrap_or(&record.owner);
        self.unrecorded
            .extend(transition_entry(record, &before, after, by));
        self.work.extend(work_of(id, &decision));
        self.is_changed |= decision == ContextDecision::RemoveFiles;
        if decision == ContextDecision::Forget {
            let state = entry.lifecycle.state();
            tracing::info!(context = %id, ?state, "a context is over");
            self.entries.remove(id);
        }
        Some(decision)
    }
}

fn work_of(id: &ContextId, decision: &ContextDecision) -> Option<ContextWork> {
    match decision {
        ContextDecision::StopUses => Some(ContextWork::StopUses(id.clone())),
        ContextDecision::RemoveFiles => Some(ContextWork::RemoveFiles(id.clone())),
        ContextDecision::Nothing
        | ContextDecision::Admit
        | ContextDecision::Refuse(_)
        | ContextDecision::Forget => None,
    }
}
