//! Carrying out what the book decides.

use std::future::pending;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ostler_model::{Caller, ExecutionId, Io, Owner, Principal, Timestamp};
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;

use super::approval::{AskedStart, Consent, Spend};
use super::book::{Book, Delivery, Now};
use super::error::InteractionError;
use super::question::Question;
use super::state::{Answer, CancelReason, Interaction, InteractionId};
use super::validate;
use crate::core::Core;
use crate::driver::{Ask, Purpose, Write};
use crate::error::Error;

/// The registry of one engine.
#[derive(Debug)]
pub(crate) struct Desk {
    book: Mutex<Book>,
    /// Counts what happened.
    changes: watch::Sender<u64>,
    /// When the next one runs out of time.
    alarm: watch::Sender<Option<Instant>>,
}

impl Desk {
    pub(crate) fn new() -> Self {
        Self {
            book: Mutex::default(),
            changes: watch::Sender::new(0),
            alarm: watch::Sender::new(None),
        }
    }

    /// An execution has ended: nothing of it waits for an answer any more.
    pub(crate) fn execution_ended(&self, id: ExecutionId) {
        let of_it = |it: &Interaction| it.question.execution == Some(id);
        self.cancel_where(of_it, &CancelReason::ExecutionEnded);
    }

    /// A line went into an execution by another way: its question has had its answer.
    pub(crate) fn input_arrived(&self, id: ExecutionId) {
        let of_it = |it: &Interaction| it.question.execution == Some(id);
        self.cancel_where(of_it, &CancelReason::AnsweredElsewhere);
    }

    /// An execution was passed to its project, and what it asks with it.
    pub(crate) fn pass_to(&self, id: ExecutionId, owner: &Owner) {
        self.change(|book| book.pass_to(id, owner));
    }

    /// A session ended.
    pub(crate) fn session_ended(&self, owner: &Owner) {
        let theirs = |it: &Interaction| {
            it.owner.principal == owner.principal && it.owner.session == owner.session
        };
        self.cancel_where(theirs, &CancelReason::SessionEnded);
    }

    /// Whether a person agreed to this start; a yes is spent with it.
    pub(crate) fn consent(
        &self,
        owner: &Owner,
        asked: &AskedStart,
        (named, spend): (Option<&str>, Spend),
    ) -> Consent {
        let named = named.and_then(InteractionId::parse);
        self.lock()
            .consent(Timestamp::now(), owner, asked, (named, spend))
    }

    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// What the caller sees, newest first.
    pub(super) fn list(&self, caller: &Caller, open_only: bool) -> Vec<Interaction> {
        let book = self.lock();
        let seen = book.iter().filter(|it| caller.sees(&it.owner));
        seen.filter(|it| it.is_open() || !open_only)
            .cloned()
            .collect()
    }

    /// The interaction a caller means, if it may see it; unknown and foreign are told alike.
    pub(super) fn find(&self, caller: &Caller, id: &str) -> Result<Interaction, InteractionError> {
        let id = InteractionId::parse(id).ok_or(InteractionError::NotFound)?;
        let book = self.lock();
        let found = book.get(id).filter(|it| caller.sees(&it.owner));
        found.cloned().ok_or(InteractionError::NotFound)
    }

    pub(super) fn outcome(&self, id: InteractionId) -> Result<Option<Answer>, InteractionError> {
        let book = self.lock();
        let interaction = book.get(id).ok_or(InteractionError::NotFound)?;
        debug_assert_eq!(interaction.is_open(), book.outcome(id).is_none());
        Ok(book.outcome(id).cloned())
    }

    pub(super) fn cancel(
        &self,
        id: InteractionId,
        reason: CancelReason,
    ) -> Result<Interaction, InteractionError> {
        self.change(|book| book.cancel(id, reason))
    }

    fn cancel_where(&self, meant: impl Fn(&Interaction) -> bool, reason: &CancelReason) {
        // Most executions never ask: nobody is woken for them.
        if self.lock().iter().any(|it| it.is_open() && meant(it)) {
            self.change(|book| book.cancel_where(meant, reason));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Decides, and tells everybody.
    fn change<T>(&self, decide: impl FnOnce(&mut Book) -> T) -> T {
        let (decided, next) = {
            let mut book = self.lock();
            let decided = decide(&mut book);
            (decided, book.next_deadline())
        };
        self.changes.send_modify(|count| *count += 1);
        self.alarm.send_if_modified(|known| {
            let changed = *known != next;
            *known = next;
            changed
        });
        decided
    }
}

fn now() -> Now {
    Now {
        at: Timestamp::now(),
        instant: Instant::now(),
    }
}

impl Core {
    /// Takes defaults and gives up what nobody answered, at the exact moments, for as long as
    /// the engine lives.
    pub(crate) async fn keep_desk(self: Arc<Self>) {
        let mut alarm = self.desk.alarm.subscribe();
        loop {
            let due = *alarm.borrow_and_update();
            tokio::select! {
                biased;
                () = self.closing.cancelled() => break,
                // The sender lives as long as the engine.
                Ok(()) = alarm.changed() => {}
                () = ring(due) => {
                    for delivery in self.desk.change(|book| book.expire(now())) {
                        self.deliver(delivery);
                    }
                }
            }
        }
        self.desk.cancel_where(|_| true, &CancelReason::Shutdown);
    }

    /// Asks on behalf of a caller.
    pub(crate) fn ask(&self, caller: &Caller, question: Question) -> Result<Interaction, Error> {
        if self.closing.is_cancelled() {
            return Err(Error::Closing);
        }
        let Some(id) = question.execution else {
            let owner = caller.owner.clone();
            return Ok(self.desk.change(|book| book.open(now(), owner, question))?);
        };
        let entry = self.registry.find(caller, &id.to_string())?;
        let owner = Owner::clone(&entry.owner());
        let asked = self.desk.change(|book| book.open(now(), owner, question))?;
        if entry.is_finished() {
            // Whoever ended it may have looked before this was there to be cancelled.
            self.desk.execution_ended(id);
            return Err(InteractionError::Ended { id }.into());
        }
        Ok(asked)
    }

    /// Answers on behalf of a principal; for an execution, once the line was taken.
    pub(super) async fn answer(
        self: &Arc<Self>,
        asked: &Interaction,
        by: Principal,
        value: String,
    ) -> Result<(), Error> {
        let entry = asked
            .question
            .execution
            .and_then(|id| self.registry.get(id));
        if let Some(entry) = &entry {
            entry.leases.check(entry.id, None)?;
        }
        let question = asked.question.clone();
        let cwd = entry.map(|entry| entry.spec.cwd.as_path().to_owned());
        let check = move || validate::normalise(&question, &value, cwd.as_deref());
        // A path may lie on a disk that does not answer.
        let checked = tokio::task::spawn_blocking(check).await;
        let value = checked.map_err(|_| Error::Closing)??;
        let decided = self
            .desk
            .change(|book| book.answer(now(), asked.id, by, value))?;
        match decided {
            None => Ok(()),
            Some(delivery) => self.deliver(delivery).await.unwrap_or(Err(Error::Closing)),
        }
    }

    /// Brings an answer in, whether or not anybody waits to hear of it.
    fn deliver(self: &Arc<Self>, delivery: Delivery) -> oneshot::Receiver<Result<(), Error>> {
        let (told, hear) = oneshot::channel();
        let core = Arc::clone(self);
        self.tracker.spawn(async move {
            let outcome = core.bring(delivery).await;
            // Whoever asked may have gone; the answer went in all the same.
            let _gone = told.send(outcome).is_err();
        });
        hear
    }

    /// The outcome is the first delivery's; the default that may follow it is nobody's wait.
    async fn bring(&self, first: Delivery) -> Result<(), Error> {
        let id = first.id;
        let outcome = self.type_in(first).await;
        let arrived = outcome.is_ok();
        let mut next = self.desk.change(|book| book.delivered(now(), id, arrived));
        while let Some(delivery) = next {
            let arrived = self.type_in(delivery).await.is_ok();
            next = self.desk.change(|book| book.delivered(now(), id, arrived));
        }
        Ok(outcome?)
    }

    async fn type_in(&self, delivery: Delivery) -> Result<(), InteractionError> {
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
        let given = bytes.len() as u64;
        let (answer, taken) = oneshot::channel();
        let write = Write {
            by: delivery.by,
            bytes,
            close: false,
            purpose: Purpose::Answer,
            answer,
        };
        let sent = match entry.ask(Ask::Write(write)).await {
            // A driver that is done answers nothing more.
            Ok(()) => taken
                .await
                .unwrap_or(Err(ostler_process::ControlError::Ended))
                .map(|taken| taken.bytes),
            Err(error) => Err(error),
        };
        match sent {
            Ok(taken) if taken == given => Ok(()),
            Ok(taken) => Err(InteractionError::NotTaken { taken, given }),
            Err(ostler_process::ControlError::Ended) => Err(InteractionError::Ended { id }),
            Err(error) => Err(InteractionError::NotDelivered {
                message: error.to_string(),
            }),
        }
    }
}

async fn ring(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due).await,
        None => pending().await,
    }
}

/// What ends a typed line: what Enter sends, where it is typed at a terminal.
const fn line_end(io: &Io) -> u8 {
    match io {
        Io::Pty { .. } => b'\r',
        Io::Pipes { .. } => b'\n',
    }
}
