//! Performs what the interaction table decides: timers, notifications, delivery of answers.

use std::future::pending;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ostler_model::{Caller, ExecutionId, Io, Owner, Principal, Timestamp};
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;

use super::error::InteractionError;
use super::question::Question;
use super::state::{CancelReason, Interaction, InteractionId, InteractionOutcome};
use super::table::{AnswerDelivery, ClockSnapshot, InteractionTable};
use super::validate;
use crate::admission::approval::{ApprovalStatus, ApprovalSubject, ApprovalUse};
use crate::driver::{DriverCommand, InputWrite, WriteKind};
use crate::engine_inner::EngineInner;
use crate::error::Error;

/// The interactions of one engine.
#[derive(Debug)]
pub(crate) struct InteractionService {
    table: Mutex<InteractionTable>,
    /// Counts the changes.
    changes: watch::Sender<u64>,
    /// The next timeout of an interaction.
    next_deadline: watch::Sender<Option<Instant>>,
}

impl InteractionService {
    pub(crate) fn new() -> Self {
        Self {
            table: Mutex::default(),
            changes: watch::Sender::new(0),
            next_deadline: watch::Sender::new(None),
        }
    }

    /// Cancels the interactions of an execution that has ended.
    pub(crate) fn execution_ended(&self, id: ExecutionId) {
        let of_it = |it: &Interaction| it.question.execution == Some(id);
        self.cancel_where(of_it, &CancelReason::ExecutionEnded);
    }

    /// Ends the interactions of an execution that received a line of input by another way.
    pub(crate) fn input_arrived(&self, id: ExecutionId) {
        let of_it = |it: &Interaction| it.question.execution == Some(id);
        self.cancel_where(of_it, &CancelReason::AnsweredElsewhere);
    }

    /// Moves the interactions of an execution that was passed to its project.
    pub(crate) fn transfer_to(&self, id: ExecutionId, owner: &Owner) {
        self.update(|book| book.transfer_to(id, owner));
    }

    /// Cancels the interactions of a session that has ended.
    pub(crate) fn session_ended(&self, owner: &Owner) {
        let theirs = |it: &Interaction| {
            it.owner.principal == owner.principal && it.owner.session == owner.session
        };
        self.cancel_where(theirs, &CancelReason::SessionEnded);
    }

    /// The status of a person's approval of this start; an approval is consumed by it.
    pub(crate) fn approval_status(
        &self,
        owner: &Owner,
        subject: &ApprovalSubject,
        (approval_id, usage): (Option<&str>, ApprovalUse),
    ) -> ApprovalStatus {
        let approval_id = approval_id.and_then(InteractionId::parse);
        self.lock()
            .approval_status(Timestamp::now(), owner, subject, (approval_id, usage))
    }

    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// The interactions that the caller sees, newest first.
    pub(super) fn list(&self, caller: &Caller, open_only: bool) -> Vec<Interaction> {
        let table = self.lock();
        let visible = table.iter().filter(|it| caller.can_access(&it.owner));
        visible
            .filter(|it| it.is_open() || !open_only)
            .cloned()
            .collect()
    }

    /// The interaction with this id, if the caller may see it; unknown and foreign ids give the
    /// same error.
    pub(super) fn find(&self, caller: &Caller, id: &str) -> Result<Interaction, InteractionError> {
        let id = InteractionId::parse(id).ok_or(InteractionError::NotFound)?;
        let table = self.lock();
        let found = table.get(id).filter(|it| caller.can_access(&it.owner));
        found.cloned().ok_or(InteractionError::NotFound)
    }

    pub(super) fn outcome(
        &self,
        id: InteractionId,
    ) -> Result<Option<InteractionOutcome>, InteractionError> {
        let table = self.lock();
        let interaction = table.get(id).ok_or(InteractionError::NotFound)?;
        debug_assert_eq!(interaction.is_open(), table.outcome(id).is_none());
        Ok(table.outcome(id).cloned())
    }

    pub(super) fn cancel(
        &self,
        id: InteractionId,
        reason: CancelReason,
    ) -> Result<Interaction, InteractionError> {
        self.update(|book| book.cancel(id, reason))
    }

    fn cancel_where(&self, matches: impl Fn(&Interaction) -> bool, reason: &CancelReason) {
        // Most executions have no interactions: nobody is woken for them.
        if self.lock().iter().any(|it| it.is_open() && matches(it)) {
            self.update(|book| book.cancel_where(matches, reason));
        }
    }

    fn lock(&self) -> MutexGuard<'_, InteractionTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Updates the table, and notifies all waiters.
    fn update<T>(&self, decide: impl FnOnce(&mut InteractionTable) -> T) -> T {
        let (result, next) = {
            let mut table = self.lock();
            let result = decide(&mut table);
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

fn now() -> ClockSnapshot {
    ClockSnapshot {
        at: Timestamp::now(),
        instant: Instant::now(),
    }
}

impl EngineInner {
    /// Applies defaults and times interactions out at their deadlines, for as long as the engine
    /// lives.
    pub(crate) async fn run_interaction_timer(self: Arc<Self>) {
        let mut next_deadline = self.interactions.next_deadline.subscribe();
        loop {
            let due = *next_deadline.borrow_and_update();
            tokio::select! {
                biased;
                () = self.closing.cancelled() => break,
                // The sender lives as long as the engine.
                Ok(()) = next_deadline.changed() => {}
                () = sleep_until_due(due) => {
                    for delivery in self.interactions.update(|book| book.expire(now())) {
                        self.spawn_delivery(delivery);
                    }
                }
            }
        }
        self.interactions
            .cancel_where(|_| true, &CancelReason::Shutdown);
    }

    /// Opens an interaction for a caller.
    pub(crate) fn open_interaction(
        &self,
        caller: &Caller,
        question: Question,
    ) -> Result<Interaction, Error> {
        if self.closing.is_cancelled() {
            return Err(Error::Closing);
        }
        let Some(id) = question.execution else {
            let owner = caller.owner.clone();
            return Ok(self
                .interactions
                .update(|book| book.open(now(), owner, question))?);
        };
        let entry = self.registry.find(caller, &id.to_string())?;
        let owner = Owner::clone(&entry.owner());
        let interaction = self
            .interactions
            .update(|book| book.open(now(), owner, question))?;
        if entry.is_finished() {
            // The execution's end may have been handled before this existed to be cancelled.
            self.interactions.execution_ended(id);
            return Err(InteractionError::Ended { id }.into());
        }
        Ok(interaction)
    }

    /// Answers for a principal; for an execution, returns once the line was accepted.
    pub(super) async fn answer_interaction(
        self: &Arc<Self>,
        interaction: &Interaction,
        by: Principal,
        value: String,
    ) -> Result<(), Error> {
        let entry = interaction
            .question
            .execution
            .and_then(|id| self.registry.get(id));
        if let Some(entry) = &entry {
            entry.leases.check(entry.id, None)?;
        }
        let question = interaction.question.clone();
        let cwd = entry.map(|entry| entry.spec.cwd.as_path().to_owned());
        let check = move || validate::normalise(&question, &value, cwd.as_deref());
        // A path may be on a disk that does not respond.
        let checked = tokio::task::spawn_blocking(check).await;
        let value = checked.map_err(|_| Error::Closing)??;
        let delivery = self
            .interactions
            .update(|book| book.answer(now(), interaction.id, by, value))?;
        match delivery {
            None => Ok(()),
            Some(delivery) => self
                .spawn_delivery(delivery)
                .await
                .unwrap_or(Err(Error::Closing)),
        }
    }

    /// Delivers an answer, whether or not a caller waits for the result.
    fn spawn_delivery(
        self: &Arc<Self>,
        delivery: AnswerDelivery,
    ) -> oneshot::Receiver<Result<(), Error>> {
        let (sender, receiver) = oneshot::channel();
        let core = Arc::clone(self);
        self.tracker.spawn(async move {
            let result = core.deliver_all(delivery).await;
            // The caller may have gone; the answer was delivered all the same.
            let _dropped = sender.send(result).is_err();
        });
        receiver
    }

    /// Returns the first delivery's result; nobody waits for the default that may follow it.
    async fn deliver_all(&self, first: AnswerDelivery) -> Result<(), Error> {
        let id = first.id;
        let result = self.write_answer(first).await;
        let is_delivered = result.is_ok();
        let mut next = self
            .interactions
            .update(|book| book.finish_delivery(now(), id, is_delivered));
        while let Some(delivery) = next {
            let is_delivered = self.write_answer(delivery).await.is_ok();
            next = self
                .interactions
                .update(|book| book.finish_delivery(now(), id, is_delivered));
        }
        Ok(result?)
    }

    async fn write_answer(&self, delivery: AnswerDelivery) -> Result<(), InteractionError> {
        let id = delivery.execution;
        let entry = self
            .registry
            .get(id)
            .ok_or(InteractionError::Ended { id })?;
        if let Err(error) = entry.leases.check(id, None) {
            return Err(InteractionError::NotDelivered {
                message: error.to_string(),
            });
        }
        let mut bytes = delivery.line.into_bytes();
        bytes.push(line_end(&entry.spec.io));
        let total = bytes.len() as u64;
        let (reply, written) = oneshot::channel();
        let write = InputWrite {
            by: delivery.by,
            bytes,
            close: false,
            kind: WriteKind::PromptReply,
            reply,
        };
        let sent = match entry.send_command(DriverCommand::Write(write)).await {
            // A driver that is done returns nothing more.
            Ok(()) => written
                .await
                .unwrap_or(Err(ostler_backend::ControlError::Ended))
                .map(|taken| taken.accepted),
            Err(error) => Err(error),
        };
        match sent {
            Ok(written) if written == total => Ok(()),
            Ok(written) => Err(InteractionError::PartiallyWritten {
                taken: written,
                given: total,
            }),
            Err(ostler_backend::ControlError::Ended) => Err(InteractionError::Ended { id }),
            Err(error) => Err(InteractionError::NotDelivered {
                message: error.to_string(),
            }),
        }
    }
}

async fn sleep_until_due(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due).await,
        None => pending().await,
    }
}

/// The line end of typed input: that of the Enter key, at a terminal.
const fn line_end(io: &Io) -> u8 {
    match io {
        Io::Pty { .. } => b'\r',
        Io::Pipes { .. } => b'\n',
    }
}
