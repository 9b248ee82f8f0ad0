//! The facade every face uses.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use ostler_journal::follow::Follower as Reader;
use ostler_journal::{Journal, LedgerReader};
use ostler_model::event::TrimReason;
use ostler_model::{Abilities, Caller, Cursor, ExecutionId, Signal, StopOrder, TermSize};
use ostler_process::{ControlError, Order, Place};
use tokio::sync::{broadcast, oneshot, watch};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::admission::arguments::{self, ArgumentError};
use crate::begin::{self, Begun};
use crate::core::Core;
use crate::driver::{Ask, Purpose, Taken, Write, wait};
use crate::entry::{Entry, Watching};
use crate::error::Error;
use crate::follow::Follower;
use crate::info::{CleanOutcome, Info, Notice, WaitEnd, Waited};
use crate::quota_queue::QueuedStart;
use crate::request::{ListFilter, StartRequest, StopRequest, WaitFor};
use crate::service::reload;
use crate::settings::Settings;
use crate::terminal::SCREEN_CATCH_UP_BYTES;
use crate::watch::Watch;
use crate::{recover, session, stop};

/// Runs, supervises and records executions. Cheap to clone; every clone is the same engine.
#[derive(Clone)]
pub struct Engine {
    pub(crate) core: Arc<Core>,
    /// Ends the engine's tasks with its last clone, where nobody shut it down.
    _alive: Arc<DropGuard>,
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").finish_non_exhaustive()
    }
}

impl Engine {
    /// Opens the state directory, takes the lock, and recovers what an earlier engine left:
    /// each execution that had not finished is adopted, finished or lost (01 §3).
    ///
    /// # Errors
    /// [`Error::Locked`] when another engine holds the directory, [`Error::Storage`] when it
    /// cannot be made or read.
    pub async fn open(settings: Settings, place: Arc<dyn Place>) -> Result<Self, Error> {
        let core = Core::open(settings, place)?;
        let alive = CancellationToken::clone(&core.closing).drop_guard();
        recover::recover(&core).await?;
        reload::resume(&core);
        core.tracker.spawn(Arc::clone(&core).keep_calendar());
        core.tracker.spawn(Arc::clone(&core).keep_desk());
        Ok(Self {
            core,
            _alive: Arc::new(alive),
        })
    }

    /// Admits and starts; answers when the program runs. The id counts as given out.
    ///
    /// # Errors
    /// Everything admission refuses, and [`Error::NotBorn`] when the program could not be
    /// executed.
    pub async fn start(&self, caller: &Caller, request: StartRequest) -> Result<Info, Error> {
        let begun = self.begin(caller, request).await?;
        Ok(begun.keep())
    }

    /// As [`Engine::start`], but cancelled when the answer is dropped before it was kept (F7).
    ///
    /// # Errors
    /// As [`Engine::start`].
    pub async fn begin(&self, caller: &Caller, request: StartRequest) -> Result<Begun, Error> {
        let begun = begin::begin(&self.core, caller, request, true).await?;
        begun.started().await?;
        Ok(begun)
    }

    /// Whether this would be started now, were there a place: what is refused is refused as by
    /// [`Engine::start`], and a person is asked where the policy wants that. Nothing is started,
    /// and a yes is still there for the start.
    ///
    /// # Errors
    /// As [`Engine::start`].
    pub async fn check_start(&self, caller: &Caller, request: StartRequest) -> Result<(), Error> {
        begin::check(&self.core, caller, request, begin::Consent::Obtain).await
    }

    /// As [`Engine::begin`], but answers before the program runs: one hop less for those who
    /// wait for more than its birth anyway. [`Info::born`] tells whether it ran at all.
    ///
    /// # Errors
    /// Everything admission refuses.
    pub async fn launch(&self, caller: &Caller, request: StartRequest) -> Result<Begun, Error> {
        begin::begin(&self.core, caller, request, false).await
    }

    /// Start and wait for the end, in one hop; at most `at_most`, after which the id counts
    /// as given out. Dropping the future before it is ready cancels the execution (F7).
    ///
    /// # Errors
    /// As [`Engine::start`].
    pub async fn run(
        &self,
        caller: &Caller,
        request: StartRequest,
        at_most: Option<Duration>,
    ) -> Result<Waited, Error> {
        let begun = begin::begin(&self.core, caller, request, false).await?;
        let mut waited = begun.wait(&WaitFor::Exit, at_most).await?;
        if waited.why == WaitEnd::AtMost {
            waited.info = begun.keep();
        }
        waited.info.born()?;
        Ok(waited)
    }

    /// Waits until something is so; the execution's end ends every wait.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::Output`] while looking for a pattern.
    pub async fn wait(
        &self,
        caller: &Caller,
        id: &str,
        until: &WaitFor,
        at_most: Option<Duration>,
    ) -> Result<Waited, Error> {
        if let WaitFor::Idle(quiet) = until {
            arguments::in_range("idle", *quiet)?;
        }
        let entry = self.core.registry.find(caller, id)?;
        wait::wait(&self.core, &entry, until, at_most).await
    }

    /// What is known of one execution.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub fn info(&self, caller: &Caller, id: &str) -> Result<Info, Error> {
        Ok(self.core.registry.find(caller, id)?.fresh_info())
    }

    /// How the start with this id, which its client chose, waits for a place; none where it
    /// does not.
    #[must_use]
    pub fn queued_start(&self, caller: &Caller, id: ExecutionId) -> Option<QueuedStart> {
        self.core.registry.queued(caller, id)
    }

    /// How many of the executions the caller sees run now.
    #[must_use]
    pub fn running(&self, caller: &Caller) -> u64 {
        let run = self.core.registry.living();
        run.filter(|entry| caller.sees(&entry.owner())).count() as u64
    }

    /// What the caller sees and the filter lets through, newest first.
    #[must_use]
    pub fn list(&self, caller: &Caller, filter: &ListFilter) -> Vec<Info> {
        let entries = self.core.registry.all_with(|summary| {
            caller.sees(&summary.owner) && filter.status.is_none_or(|it| summary.status == it)
        });
        let seen = entries
            .filter(|entry| caller.sees(&entry.owner()))
            .filter(|entry| {
                filter
                    .labels
                    .iter()
                    .all(|it| entry.spec.labels.contains(it))
            })
            .map(|entry| entry.info())
            .filter(|info| filter.status.is_none_or(|it| info.status().process == it));
        seen.take(filter.limit.unwrap_or(usize::MAX)).collect()
    }

    /// At most `limit` of what the caller sees, newest first; only what was accepted before
    /// the execution `before`, where one is named.
    #[must_use]
    pub fn page(&self, caller: &Caller, before: Option<ExecutionId>, limit: usize) -> Vec<Info> {
        let entries = self.core.registry.all_with(|summary| {
            caller.sees(&summary.owner) && before.is_none_or(|before| summary.id < before)
        });
        let seen = entries
            .filter(|entry| before.is_none_or(|before| entry.id < before))
            .filter(|entry| caller.sees(&entry.owner()));
        seen.take(limit).map(|entry| entry.info()).collect()
    }

    /// Stops, and answers when it has ended. Stops that come together share the first one's
    /// reason; one with `force` hastens it. Stopping what has ended changes nothing.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::StillRunning`].
    pub async fn stop(
        &self,
        caller: &Caller,
        id: &str,
        request: StopRequest,
    ) -> Result<Info, Error> {
        let reason = request.reason.as_ref().map_or(0, String::len);
        arguments::at_most("the reason", reason, arguments::REASON_BYTES)?;
        let entry = self.core.registry.find(caller, id)?;
        let grace = match request.grace {
            _ if request.force => Duration::ZERO,
            Some(grace) => grace,
            None => self.core.settings.grace,
        };
        let order = StopOrder::Requested {
            by: caller.owner.principal.clone(),
            reason: request.reason,
            force: request.force,
        };
        stop::carry_out(&self.core, &entry, order, grace).await?;
        Ok(entry.info())
    }

    /// Gives an execution up for the one who started it: it ends like a request that was
    /// cancelled (F7), and counts as cancelled as an MCP task. Dropped, the order stands.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::StillRunning`].
    pub async fn cancel(&self, caller: &Caller, id: &str) -> Result<Info, Error> {
        let entry = self.core.registry.find(caller, id)?;
        let grace = self.core.settings.grace;
        stop::carry_out(&self.core, &entry, StopOrder::Cancelled, grace).await?;
        Ok(entry.info())
    }

    /// Sends one signal to the leader's process group.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::Control`] when it has ended.
    pub async fn signal(&self, caller: &Caller, id: &str, signal: Signal) -> Result<(), Error> {
        let entry = self.core.registry.find(caller, id)?;
        pass(&entry, Order::Signal(signal)).await
    }

    /// Writes to standard input or the terminal; answers how many bytes were taken, fewer
    /// than given when the command does not read.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::Control`] when it has ended or has no input,
    /// [`Error::Leased`] while somebody holds its writer's lease.
    pub async fn write(&self, caller: &Caller, id: &str, bytes: Vec<u8>) -> Result<u64, Error> {
        self.write_and(caller, id, bytes, false).await
    }

    /// Ends standard input.
    ///
    /// # Errors
    /// As [`Engine::write`].
    pub async fn close_input(&self, caller: &Caller, id: &str) -> Result<(), Error> {
        self.write_and(caller, id, Vec::new(), true).await.map(drop)
    }

    /// Gives the terminal a new size.
    ///
    /// # Errors
    /// As [`Engine::write`].
    pub async fn resize(&self, caller: &Caller, id: &str, size: TermSize) -> Result<(), Error> {
        arguments::size(size)?;
        let entry = self.core.registry.find(caller, id)?;
        entry.leases.check(entry.id, None)?;
        pass(&entry, Order::Resize(size)).await
    }

    /// Removes ended executions with everything they left on disk; one outcome per id, in
    /// the order given.
    ///
    /// # Errors
    /// [`Error::Argument`] for an empty list.
    pub async fn clean(
        &self,
        caller: &Caller,
        ids: &[String],
    ) -> Result<Vec<(String, CleanOutcome)>, Error> {
        if ids.is_empty() {
            return Err(ArgumentError::EmptyIdList.into());
        }
        let mut outcomes = Vec::with_capacity(ids.len());
        for id in ids {
            let outcome = match self.core.registry.find(caller, id) {
                Ok(entry) if !entry.is_finished() => CleanOutcome::Running,
                Ok(entry) => self.core.remove(entry.id).await,
                Err(_) => CleanOutcome::NotFound,
            };
            outcomes.push((id.clone(), outcome));
        }
        Ok(outcomes)
    }

    /// Drops all output up to now, also while it runs; answers how many bytes.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::Clear`].
    pub async fn clear_output(&self, caller: &Caller, id: &str) -> Result<u64, Error> {
        let entry = self.core.registry.find(caller, id)?;
        let journal = entry.journal()?;
        let (from, to) = {
            let _upkeep = entry.upkeep.lock().await;
            self.core.keep_screen(&entry, SCREEN_CATCH_UP_BYTES).await;
            let work = tokio::task::spawn_blocking(move || journal.clear()).await;
            let gone = work.map_err(|_| Error::Closing)?.map_err(Error::Clear)?;
            (gone.from, gone.to)
        };
        let by = caller.owner.principal.clone();
        let (answer, noted) = oneshot::channel();
        let ask = Ask::Trimmed {
            from,
            to,
            by,
            answer,
        };
        if entry.ask(ask).await.is_err() || noted.await.is_err() {
            // The driver has seen the end; once it is done, the events are ours to write.
            entry.settled().await;
            entry.note_trimmed((from, to), TrimReason::Cleared)?;
        }
        Ok(to.saturating_sub(from))
    }

    /// The journal, to read from.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::Output`].
    pub fn journal(&self, caller: &Caller, id: &str) -> Result<Journal, Error> {
        self.core.registry.find(caller, id)?.journal()
    }

    /// Output from a position on, as it comes.
    ///
    /// # Errors
    /// As [`Engine::journal`].
    pub fn follow(&self, caller: &Caller, id: &str, from: Cursor) -> Result<Follower, Error> {
        let entry = self.core.registry.find(caller, id)?;
        let reader = Reader::new(entry.journal()?, from, entry.marks.subscribe());
        Ok(Follower::new(reader, Watching::new(&entry)))
    }

    /// Change of one execution, as it comes.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub fn watch(&self, caller: &Caller, id: &str) -> Result<Watch, Error> {
        Ok(Watch::new(self.core.registry.find(caller, id)?))
    }

    /// Ends the caller's session: finite executions stop and are cleaned, services and
    /// starts with `keep` pass to the project (D3).
    ///
    /// # Errors
    /// The first stop that failed; the others are carried out all the same.
    pub async fn end_session(&self, caller: &Caller) -> Result<(), Error> {
        session::end(&self.core, caller).await
    }

    /// Lifecycle events of every execution from now on. A subscriber that falls behind is
    /// told how many it missed.
    #[must_use]
    pub fn subscribe(&self) -> broadcast::Receiver<Notice> {
        self.core.notices.subscribe()
    }

    /// How many executions run now.
    #[must_use]
    pub fn activity(&self) -> watch::Receiver<u64> {
        self.core.registry.activity()
    }

    /// What the place can enforce.
    #[must_use]
    pub fn abilities(&self) -> &Abilities {
        &self.core.abilities
    }

    /// How the engine was set up.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.core.settings
    }

    /// Ends the engine: what is not durable or has no id given out is stopped, the rest goes
    /// on without it. Every later request is refused.
    pub async fn shutdown(&self) {
        self.core.closing.cancel();
        self.core.tracker.close();
        self.core.tracker.wait().await;
        self.core.store_screens();
        self.core.place.close().await;
        self.core.release();
    }

    /// Until the engine begins to shut down.
    pub async fn closing(&self) {
        self.core.closing.cancelled().await;
    }

    /// The ledger, to read from.
    #[must_use]
    pub fn ledger(&self) -> Option<LedgerReader> {
        self.core.ledger_reader()
    }

    /// Until everything of an ended execution is on disk; at once while it runs.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub async fn settled(&self, caller: &Caller, id: &str) -> Result<(), Error> {
        let entry = self.core.registry.find(caller, id)?;
        if entry.is_finished() {
            entry.settled().await;
        }
        Ok(())
    }

    /// What happened to one execution, event by event.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::Output`] when its file cannot be read.
    pub fn events(
        &self,
        caller: &Caller,
        id: &str,
    ) -> Result<Vec<ostler_model::EventRecord>, Error> {
        let entry = self.core.registry.find(caller, id)?;
        Ok(ostler_journal::read_events(&entry.dir)?)
    }

    async fn write_and(
        &self,
        caller: &Caller,
        id: &str,
        bytes: Vec<u8>,
        close: bool,
    ) -> Result<u64, Error> {
        let entry = self.core.registry.find(caller, id)?;
        entry.leases.check(entry.id, None)?;
        let taken = put_in(&entry, caller, bytes, close).await?;
        Ok(taken.bytes)
    }
}

/// Writes as one, and answers what became of it.
pub(crate) async fn put_in(
    entry: &Entry,
    caller: &Caller,
    bytes: Vec<u8>,
    close: bool,
) -> Result<Taken, Error> {
    put(entry, caller, (bytes, close), Purpose::Input).await
}

/// Hands bytes over to the driver, and answers what became of them.
pub(crate) async fn put(
    entry: &Entry,
    caller: &Caller,
    (bytes, close): (Vec<u8>, bool),
    purpose: Purpose,
) -> Result<Taken, Error> {
    let (answer, taken) = oneshot::channel();
    let by = caller.owner.principal.clone();
    let write = Write {
        by,
        bytes,
        close,
        purpose,
        answer,
    };
    entry.ask(Ask::Write(write)).await?;
    // A driver that is done answers nothing more.
    Ok(taken.await.unwrap_or(Err(ControlError::Ended))?)
}

/// Hands over an order that needs no decision.
pub(crate) async fn pass(entry: &Entry, order: Order) -> Result<(), Error> {
    let (answer, sent) = oneshot::channel();
    entry.ask(Ask::Pass { order, answer }).await?;
    // A driver that is done answers nothing more.
    Ok(sent.await.unwrap_or(Err(ControlError::Ended))?)
}
