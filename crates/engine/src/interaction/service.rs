//! Performs what the interaction table decides: timers, notifications, delivery of answers.

use std::collections::BTreeSet;
use std::future::pending;
use std::io;
use std::path::Path;
use std::sync::{Arc, OnceLock, Weak};

use ostler_model::{Caller, ExecutionId, Owner, Principal, Timestamp};
use parking_lot::Mutex;
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;

use super::changes::InteractionChanges;
use super::delivery::{is_outdated, write_answer};
use super::files::SelectableFiles;
use super::question::Question;
use super::state::{CancelReason, Interaction, InteractionOutcome, InteractionState};
use super::store::{self, StoredInteractions};
use super::table::{AnswerDelivery, ClockSnapshot, InteractionTable};
use super::validate;
use crate::admission::approval::{ApprovalStatus, ApprovalSubject, ApprovalUse};
use crate::engine_inner::EngineInner;
use crate::error::Error;
use crate::error::InteractionError;
use crate::hooks::ExecutionObserver;
use crate::interaction_id::InteractionId;
use crate::lease::WriterLeases;
use crate::ledger_checkpoint::LedgerCheckpoint;
use crate::project;

/// The interactions of one engine.
#[derive(Debug)]
pub(crate) struct InteractionService {
    pub(super) table: Mutex<InteractionTable>,
    /// Who alone may type an answer.
    pub(super) leases: Arc<WriterLeases>,
    /// Counts the changes.
    changes: watch::Sender<u64>,
    /// The next timeout of an interaction.
    next_deadline: watch::Sender<Option<Instant>>,
    /// Whose ledger records the changes; set once the engine is open.
    core: OnceLock<Weak<EngineInner>>,
    /// What the next engine learns of them.
    store: LedgerCheckpoint,
}

impl InteractionService {
    pub(crate) fn new(leases: Arc<WriterLeases>, state_dir: &Path) -> Self {
        Self {
            table: Mutex::default(),
            leases,
            changes: watch::Sender::new(0),
            next_deadline: watch::Sender::new(None),
            core: OnceLock::new(),
            store: LedgerCheckpoint::new(state_dir, store::FILE),
        }
    }

    /// Records every change in the ledger of this engine from now on, takes over what had ended under
    /// an earlier one, and ends what one that was killed left open.
    pub(crate) fn record_in(&self, core: &Arc<EngineInner>) {
        // Called once, by whoever opens the engine.
        drop(self.core.set(Arc::downgrade(core)));
        let Some(reader) = core.ledger_reader() else {
            return;
        };
        let left: StoredInteractions = self.store.read(&reader, *core.ledger_end.borrow());
        if left.last_id > 0 {
            let last_id = left.last_id;
            let (open, ended) = left.into_parts();
            self.update(|book| {
                for one in ended.into_iter().rev() {
                    book.restore_ended(now(), one);
                }
                book.end_left(now(), last_id, open.into_iter());
            });
        }
    }

    /// The status of a person's approval of this start; an approval is consumed by it.
    pub(crate) fn approval_status(
        &self,
        owner: &Owner,
        subject: &ApprovalSubject,
        approval_id: Option<&str>,
        usage: ApprovalUse,
    ) -> ApprovalStatus {
        let approval_id = approval_id.and_then(InteractionId::parse);
        let mut table = self.table.lock();
        let status = table.approval_status(Timestamp::now(), owner, subject, approval_id, usage);
        // Before the start: for the next engine, a consumed approval is none.
        match (self.record_transitions(&mut table), status) {
            (Err(error), ApprovalStatus::Granted(id)) if usage == ApprovalUse::Consume => {
                table.release_approval(id);
                ApprovalStatus::NotWritten {
                    path: self.store.path().to_owned(),
                    problem: error.to_string(),
                }
            }
            (Ok(()) | Err(_), status) => status,
        }
    }

    /// This execution is the start that an approval was consumed for: it is valid again if no program
    /// could be started.
    pub(crate) fn set_approval_consumer(&self, approval: InteractionId, execution: ExecutionId) {
        self.table.lock().set_consumer(approval, execution);
    }

    /// The start that an approval was consumed for is refused: the approval is valid again.
    pub(crate) fn release_approval(&self, approval: InteractionId) {
        self.update(|table| table.release_approval(approval));
    }

    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// The interactions that the caller sees, newest first.
    pub(crate) fn list(&self, caller: &Caller, open_only: bool) -> Vec<Interaction> {
        let table = self.table.lock();
        let visible = table.iter().filter(|it| caller.can_access(&it.owner));
        visible
            .filter(|it| it.is_open() || !open_only)
            .cloned()
            .collect()
    }

    /// The interaction with this id, if the caller may see it; unknown and foreign ids give the
    /// same error. One that the caller only sees is told apart.
    pub(crate) fn find(&self, caller: &Caller, id: &str) -> Result<Interaction, Error> {
        let id = InteractionId::parse(id).ok_or(InteractionError::NotFound)?;
        let table = self.table.lock();
        let found = table.get(id).ok_or(InteractionError::NotFound)?;
        if caller.can_access(&found.owner) {
            return Ok(found.clone());
        }
        let read_only = project::read_only(caller, &found.owner);
        Err(read_only.map_or(InteractionError::NotFound.into(), Into::into))
    }

    pub(crate) fn outcome(
        &self,
        id: InteractionId,
    ) -> Result<Option<InteractionOutcome>, InteractionError> {
        let table = self.table.lock();
        let interaction = table.get(id).ok_or(InteractionError::NotFound)?;
        debug_assert_eq!(interaction.is_open(), table.outcome(id).is_none());
        Ok(table.outcome(id).cloned())
    }

    /// The changes after `position` for a caller who knows the `open` ones.
    pub(crate) fn changes_since(
        &self,
        caller: &Caller,
        position: u64,
        open: &BTreeSet<InteractionId>,
    ) -> InteractionChanges {
        let table = self.table.lock();
        table.changes_since(position, open, |it| caller.can_access(&it.owner))
    }

    /// Cancels an interaction; where an answer is being delivered, once that has failed.
    pub(crate) async fn cancel(
        &self,
        id: InteractionId,
        reason: CancelReason,
    ) -> Result<Interaction, InteractionError> {
        loop {
            match self.update(|book| book.cancel(id, reason.clone())) {
                Err(InteractionError::BeingAnswered { .. }) => self.delivery_finished(id).await,
                result => return result,
            }
        }
    }

    /// Waits until no answer to it is being delivered.
    async fn delivery_finished(&self, id: InteractionId) {
        let mut changes = self.changes();
        loop {
            changes.mark_unchanged();
            if !self.table.lock().is_claimed(id) {
                return;
            }
            // The sender lives as long as this.
            let _changed = changes.changed().await.is_ok();
        }
    }

    pub(super) fn cancel_where(
        &self,
        matches: impl Fn(&Interaction) -> bool,
        reason: &CancelReason,
    ) {
        // Most executions have no interactions: no task is woken for them.
        if self
            .table
            .lock()
            .iter()
            .any(|it| it.is_open() && matches(it))
        {
            self.update(|book| book.cancel_where(matches, reason));
        }
    }

    /// Updates the table, records the changes, and notifies all waiters.
    pub(super) fn update<T>(&self, decide: impl FnOnce(&mut InteractionTable) -> T) -> T {
        let (result, next) = {
            let mut table = self.table.lock();
            let result = decide(&mut table);
            // Under the lock: entries are in the order of the changes. The ledger has them.
            let _logged = self.record_transitions(&mut table).is_err();
            (result, table.next_deadline())
        };
        self.changes.send_modify(|count| *count += 1);
        self.next_deadline.send_if_modified(|current| {
            let changed = *current != next;
            *current = next;
            changed
        });
        result
    }
}

impl InteractionService {
    /// Writes what has changed to the ledger and to the file. A file that cannot be written is
    /// written with the next change.
    fn record_transitions(&self, table: &mut InteractionTable) -> io::Result<()> {
        let transitions = table.take_transitions();
        let Some(core) = self.core.get().and_then(Weak::upgrade) else {
            return Ok(());
        };
        for transition in transitions {
            core.write_ledger(&transition.ledger_entry(Timestamp::now()));
        }
        if let Some(last_id) = table.take_unsaved() {
            let ledger_end = *core.ledger_end.borrow();
            let stored = StoredInteractions::new(last_id, &table.by_change(), Timestamp::now());
            return self
                .store
                .try_write(ledger_end, stored)
                .inspect_err(|error| {
                    let path = self.store.path().display();
                    tracing::warn!(%path, %error, "cannot be written now");
                    table.mark_unsaved();
                });
        }
        Ok(())
    }
}

pub(super) fn now() -> ClockSnapshot {
    ClockSnapshot {
        at: Timestamp::now(),
        instant: Instant::now(),
    }
}

impl InteractionService {
    /// Applies defaults and times interactions out at their deadlines, for as long as the engine
    /// lives.
    pub(crate) async fn run_timer(self: Arc<Self>, core: Arc<EngineInner>) {
        let mut next_deadline = self.next_deadline.subscribe();
        loop {
            let due = *next_deadline.borrow_and_update();
            tokio::select! {
                biased;
                () = core.closing.cancelled() => break,
                // The sender lives as long as the engine.
                Ok(()) = next_deadline.changed() => {}
                () = sleep_until_due(due) => {
                    for delivery in self.update(|book| book.expire(now())) {
                        self.spawn_delivery(&core, delivery);
                    }
                }
            }
        }
        self.cancel_where(|_| true, &CancelReason::Shutdown);
        // What a full disk refused before.
        let _logged = self.record_transitions(&mut self.table.lock()).is_err();
    }

    /// Checks what [`InteractionService::open`] does not: the default, and the workspace.
    pub(crate) async fn check(
        &self,
        core: &EngineInner,
        caller: &Caller,
        question: &Question,
    ) -> Result<(), Error> {
        let entry = match question.execution {
            Some(id) => Some(core.registry.find(caller, &id.to_string())?),
            None => None,
        };
        let files = SelectableFiles::new(core, entry.as_deref(), question).await;
        let question = question.clone();
        // A path may be on a disk that does not respond.
        let check = move || validate::check(&question, &files);
        let checked = tokio::task::spawn_blocking(check).await;
        Ok(checked.map_err(|_| Error::Closing)??)
    }

    /// Opens an interaction for a caller.
    pub(crate) fn open(
        &self,
        core: &EngineInner,
        caller: &Caller,
        question: Question,
    ) -> Result<Interaction, Error> {
        if core.closing.is_cancelled() {
            return Err(Error::Closing);
        }
        let Some(id) = question.execution else {
            project::check_created(caller)?;
            let directory = question.directory.or_else(|| question.workspace.clone());
            let question = Question {
                directory,
                ..question
            };
            let owner = caller.owner.clone();
            return Ok(self.update(|book| book.open(now(), owner, question))?);
        };
        let entry = core.registry.find(caller, &id.to_string())?;
        let owner = Owner::clone(&entry.owner());
        let question = Question {
            directory: Some(entry.spec.cwd.as_path().to_owned()),
            ..question
        };
        let interaction = self.update(|book| book.open(now(), owner, question))?;
        if entry.is_finished() {
            // The execution's end may have been handled before this existed to be cancelled.
            self.ended(id);
            return Err(InteractionError::Ended { id }.into());
        }
        Ok(interaction)
    }

    /// Answers for a principal; for an execution, returns once the line was accepted. Where another
    /// answer is being delivered, waits for its result first.
    pub(crate) async fn answer(
        self: &Arc<Self>,
        core: &Arc<EngineInner>,
        interaction: &Interaction,
        by: Principal,
        value: String,
    ) -> Result<(), Error> {
        if !interaction.is_open() {
            let (id, state) = (interaction.id, interaction.state.clone());
            return Err(InteractionError::Closed { id, state }.into());
        }
        let entry = interaction
            .question
            .execution
            .and_then(|id| core.registry.get(id));
        if let Some(entry) = &entry {
            self.leases.check(entry.id, None)?;
        }
        let question = interaction.question.clone();
        let files = SelectableFiles::new(core, entry.as_deref(), &question).await;
        let check = move || validate::normalise(&question, &value, &files);
        // A path may be on a disk that does not respond.
        let checked = tokio::task::spawn_blocking(check).await;
        let value = checked.map_err(|_| Error::Closing)??;
        let id = interaction.id;
        let delivery = loop {
            match self.update(|book| book.answer(now(), id, by.clone(), value.clone())) {
                Err(InteractionError::BeingAnswered { .. }) => self.delivery_finished(id).await,
                result => break result?,
            }
        };
        match delivery {
            None => Ok(()),
            Some(delivery) => self
                .spawn_delivery(core, delivery)
                .await
                .unwrap_or(Err(Error::Closing)),
        }
    }

    /// Delivers an answer, whether or not a caller waits for the result.
    fn spawn_delivery(
        self: &Arc<Self>,
        core: &Arc<EngineInner>,
        delivery: AnswerDelivery,
    ) -> oneshot::Receiver<Result<(), Error>> {
        let (sender, receiver) = oneshot::channel();
        let (service, inner) = (Arc::clone(self), Arc::clone(core));
        core.tracker.spawn(async move {
            let result = service.deliver_all(&inner, delivery).await;
            // The caller may be gone; the answer was delivered.
            let _dropped = sender.send(result).is_err();
        });
        receiver
    }

    /// Returns the first delivery's result; that of the default that may follow it is dropped.
    async fn deliver_all(&self, core: &EngineInner, first: AnswerDelivery) -> Result<(), Error> {
        let id = first.id;
        let result = self.deliver(core, first).await;
        let is_delivered = result.is_ok();
        let mut next = self.update(|book| book.finish_delivery(now(), id, is_delivered));
        while let Some(delivery) = next {
            let is_delivered = self.deliver(core, delivery).await.is_ok();
            next = self.update(|book| book.finish_delivery(now(), id, is_delivered));
        }
        Ok(result?)
    }

    /// Types an answer, unless the command has gone on from its prompt: what is typed then would answer
    /// whatever it asks next.
    async fn deliver(
        &self,
        core: &EngineInner,
        delivery: AnswerDelivery,
    ) -> Result<(), InteractionError> {
        let id = delivery.id;
        let question = {
            let table = self.table.lock();
            table.get(id).map(|it| it.question.clone())
        };
        if let Some(question) = question
            && is_outdated(core, &question, delivery.execution).await
        {
            let reason = CancelReason::PromptGone;
            self.cancel_where(|it| it.id == id, &reason);
            let state = InteractionState::Cancelled { reason };
            return Err(InteractionError::Closed { id, state });
        }
        write_answer(core, &self.leases, delivery).await
    }
}

async fn sleep_until_due(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due).await,
        None => pending().await,
    }
}
