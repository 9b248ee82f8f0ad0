//! [`Engine`], the facade that every API surface uses.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use ostler_backend::{Backend, ControlCommand, ControlError};
use ostler_journal::follow::JournalFollower as Reader;
use ostler_journal::{Journal, LedgerReader};
use ostler_model::event::TrimReason;
use ostler_model::{Caller, CapabilitySet, Cursor, ExecutionId, Signal, StopReason, TermSize};
use tokio::sync::{broadcast, oneshot, watch};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::admission::arguments::{self, ArgumentError};
use crate::driver::{DriverCommand, InputWrite, WriteKind, WriteResult, wait};
use crate::engine_inner::EngineInner;
use crate::error::Error;
use crate::execution::{ExecutionHandle, OutputWatchGuard};
use crate::follow::OutputFollower;
use crate::info::{CleanOutcome, ExecutionInfo, LifecycleEvent, WaitEnd, WaitOutcome};
use crate::quota_queue::QueuedStart;
use crate::request::{ListFilter, StartRequest, StopRequest, WaitFor};
use crate::service::reload;
use crate::settings::Settings;
use crate::start::{self, StartGuard};
use crate::terminal::SCREEN_CATCH_UP_BYTES;
use crate::watch::ExecutionWatch;
use crate::{recover, session_end, stop};

/// Runs, supervises and records executions. Cheap to clone; every clone is the same engine.
#[derive(Clone)]
pub struct Engine {
    pub(crate) inner: Arc<EngineInner>,
    /// Cancels the engine's tasks when its last clone is dropped without [`Engine::shutdown`].
    _alive: Arc<DropGuard>,
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").finish_non_exhaustive()
    }
}

impl Engine {
    /// Opens the state directory, takes the lock, and recovers what an earlier engine left: each
    /// execution that had not finished is adopted, finished or lost.
    ///
    /// # Errors
    /// [`Error::Locked`] when another engine holds the directory, [`Error::Storage`] when it cannot
    /// be made or read.
    pub async fn open(settings: Settings, backend: Arc<dyn Backend>) -> Result<Self, Error> {
        let core = EngineInner::open(settings, backend)?;
        let alive = CancellationToken::clone(&core.closing).drop_guard();
        recover::recover(&core).await?;
        reload::resume(&core);
        core.tracker.spawn(Arc::clone(&core).run_retention());
        core.tracker
            .spawn(Arc::clone(&core).run_interaction_timer());
        Ok(Self {
            inner: core,
            _alive: Arc::new(alive),
        })
    }

    /// Admits and starts a command; returns when the program runs. The id counts as disclosed.
    ///
    /// # Errors
    /// Everything admission refuses, and [`Error::SpawnFailed`] when the program could not be
    /// executed.
    pub async fn start(
        &self,
        caller: &Caller,
        request: StartRequest,
    ) -> Result<ExecutionInfo, Error> {
        let guard = self.start_guarded(caller, request).await?;
        Ok(guard.commit())
    }

    /// As [`Engine::start`], but the execution is cancelled when the returned guard is dropped
    /// before it was committed.
    ///
    /// # Errors
    /// As [`Engine::start`].
    pub async fn start_guarded(
        &self,
        caller: &Caller,
        request: StartRequest,
    ) -> Result<StartGuard, Error> {
        let guard = start::start(&self.inner, caller, request, true).await?;
        guard.wait_started().await?;
        Ok(guard)
    }

    /// Whether this request would be started now if a slot within the quota were free. What
    /// admission refuses is refused as by [`Engine::start`]; where the policy wants an approval, a
    /// person is asked for it. Nothing is started, and an approval stays valid for the start.
    ///
    /// # Errors
    /// As [`Engine::start`].
    pub async fn check_start(&self, caller: &Caller, request: StartRequest) -> Result<(), Error> {
        start::check(&self.inner, caller, request, start::ApprovalMode::Request).await
    }

    /// As [`Engine::start_guarded`], but returns before the program runs: one hop less for callers
    /// that wait for more than the spawn anyway. [`ExecutionInfo::ensure_spawned`] says whether it
    /// ran at all.
    ///
    /// # Errors
    /// Everything admission refuses.
    pub async fn start_unawaited(
        &self,
        caller: &Caller,
        request: StartRequest,
    ) -> Result<StartGuard, Error> {
        start::start(&self.inner, caller, request, false).await
    }

    /// Starts and waits for the end, in one hop, for at most `timeout`, after which the id counts
    /// as disclosed. Dropping the future before it is ready cancels the execution.
    ///
    /// # Errors
    /// As [`Engine::start`].
    pub async fn run(
        &self,
        caller: &Caller,
        request: StartRequest,
        timeout: Option<Duration>,
    ) -> Result<WaitOutcome, Error> {
        let guard = start::start(&self.inner, caller, request, false).await?;
        let mut outcome = guard.wait(&WaitFor::Exit, timeout).await?;
        if outcome.end == WaitEnd::TimedOut {
            outcome.info = guard.commit();
        }
        outcome.info.ensure_spawned()?;
        Ok(outcome)
    }

    /// Waits until a condition holds; the execution's end ends every wait.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::Output`] while searching for a pattern.
    pub async fn wait(
        &self,
        caller: &Caller,
        id: &str,
        until: &WaitFor,
        timeout: Option<Duration>,
    ) -> Result<WaitOutcome, Error> {
        if let WaitFor::Idle(quiet) = until {
            arguments::check_duration("idle", *quiet)?;
        }
        let entry = self.inner.registry.find(caller, id)?;
        wait::wait(&self.inner, &entry, until, timeout).await
    }

    /// The current state of one execution.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub fn info(&self, caller: &Caller, id: &str) -> Result<ExecutionInfo, Error> {
        Ok(self.inner.registry.find(caller, id)?.fresh_info())
    }

    /// The queue position of the start with this id, which its client chose; none where it does not
    /// wait for a slot within the quota.
    #[must_use]
    pub fn queued_start(&self, caller: &Caller, id: ExecutionId) -> Option<QueuedStart> {
        self.inner.registry.queued_start(caller, id)
    }

    /// How many of the executions the caller sees run now.
    #[must_use]
    pub fn running_count(&self, caller: &Caller) -> u64 {
        let running = self.inner.registry.running();
        running
            .filter(|entry| caller.can_access(&entry.owner()))
            .count() as u64
    }

    /// The executions that the caller sees and the filter accepts, newest first.
    #[must_use]
    pub fn list(&self, caller: &Caller, filter: &ListFilter) -> Vec<ExecutionInfo> {
        let entries = self.inner.registry.all_with(|summary| {
            caller.can_access(&summary.owner) && filter.status.is_none_or(|it| summary.status == it)
        });
        let visible = entries
            .filter(|entry| caller.can_access(&entry.owner()))
            .filter(|entry| {
                filter
                    .labels
                    .iter()
                    .all(|it| entry.spec.labels.contains(it))
            })
            .map(|entry| entry.info())
            .filter(|info| filter.status.is_none_or(|it| info.status().process == it));
        visible.take(filter.limit.unwrap_or(usize::MAX)).collect()
    }

    /// At most `limit` of the executions that the caller sees, newest first; only those accepted
    /// before the execution `before`, where one is named.
    #[must_use]
    pub fn list_page(
        &self,
        caller: &Caller,
        before: Option<ExecutionId>,
        limit: usize,
    ) -> Vec<ExecutionInfo> {
        let entries = self.inner.registry.all_with(|summary| {
            caller.can_access(&summary.owner) && before.is_none_or(|before| summary.id < before)
        });
        let visible = entries
            .filter(|entry| before.is_none_or(|before| entry.id < before))
            .filter(|entry| caller.can_access(&entry.owner()));
        visible.take(limit).map(|entry| entry.info()).collect()
    }

    /// Stops the execution, and returns when it has ended. Concurrent stops share the first one's
    /// reason; one with `force` escalates at once. Stopping an ended execution changes nothing.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::StillRunning`].
    pub async fn stop(
        &self,
        caller: &Caller,
        id: &str,
        request: StopRequest,
    ) -> Result<ExecutionInfo, Error> {
        let reason = request.reason.as_ref().map_or(0, String::len);
        arguments::check_length("the reason", reason, arguments::REASON_BYTES)?;
        let entry = self.inner.registry.find(caller, id)?;
        let grace = match request.grace {
            _ if request.force => Duration::ZERO,
            Some(grace) => grace,
            None => self.inner.settings.grace,
        };
        let order = StopReason::Requested {
            by: caller.owner.principal.clone(),
            reason: request.reason,
            force: request.force,
        };
        stop::stop_and_wait(&self.inner, &entry, order, grace).await?;
        Ok(entry.info())
    }

    /// Cancels an execution on behalf of the client that started it: it ends like a request that
    /// was cancelled, and counts as cancelled as an MCP task. Dropping the future does not withdraw
    /// the cancellation.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::StillRunning`].
    pub async fn cancel(&self, caller: &Caller, id: &str) -> Result<ExecutionInfo, Error> {
        let entry = self.inner.registry.find(caller, id)?;
        let grace = self.inner.settings.grace;
        stop::stop_and_wait(&self.inner, &entry, StopReason::Cancelled, grace).await?;
        Ok(entry.info())
    }

    /// Sends one signal to the leader's process group.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::ControlFailed`] when it has ended.
    pub async fn signal(&self, caller: &Caller, id: &str, signal: Signal) -> Result<(), Error> {
        let entry = self.inner.registry.find(caller, id)?;
        forward_command(&entry, ControlCommand::Signal(signal)).await
    }

    /// Writes to standard input or the terminal; returns how many bytes were taken, fewer than
    /// given when the command does not read.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::ControlFailed`] when it has ended or has no input,
    /// [`Error::Leased`] while somebody holds its writer's lease.
    pub async fn write(&self, caller: &Caller, id: &str, bytes: Vec<u8>) -> Result<u64, Error> {
        self.write_or_close(caller, id, bytes, false).await
    }

    /// Closes standard input.
    ///
    /// # Errors
    /// As [`Engine::write`].
    pub async fn close_input(&self, caller: &Caller, id: &str) -> Result<(), Error> {
        self.write_or_close(caller, id, Vec::new(), true)
            .await
            .map(drop)
    }

    /// Resizes the terminal.
    ///
    /// # Errors
    /// As [`Engine::write`].
    pub async fn resize(&self, caller: &Caller, id: &str, size: TermSize) -> Result<(), Error> {
        arguments::check_terminal_size(size)?;
        let entry = self.inner.registry.find(caller, id)?;
        entry.leases.check(entry.id, None)?;
        forward_command(&entry, ControlCommand::Resize(size)).await
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
            let outcome = match self.inner.registry.find(caller, id) {
                Ok(entry) if !entry.is_finished() => CleanOutcome::Running,
                Ok(entry) => self.inner.remove(entry.id).await,
                Err(_) => CleanOutcome::NotFound,
            };
            outcomes.push((id.clone(), outcome));
        }
        Ok(outcomes)
    }

    /// Drops all output so far, also while it runs; returns how many bytes.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::ClearOutput`].
    pub async fn clear_output(&self, caller: &Caller, id: &str) -> Result<u64, Error> {
        let entry = self.inner.registry.find(caller, id)?;
        let journal = entry.journal()?;
        let (from, to) = {
            let _maintenance = entry.maintenance_lock.lock().await;
            self.inner
                .checkpoint_screen(&entry, SCREEN_CATCH_UP_BYTES)
                .await;
            let work = tokio::task::spawn_blocking(move || journal.clear()).await;
            let gone = work
                .map_err(|_| Error::Closing)?
                .map_err(Error::ClearOutput)?;
            (gone.from, gone.to)
        };
        let by = caller.owner.principal.clone();
        let (reply, recorded) = oneshot::channel();
        let command = DriverCommand::OutputCleared {
            from,
            to,
            by,
            reply,
        };
        if entry.send_command(command).await.is_err() || recorded.await.is_err() {
            // The driver has seen the end; once it is done, this side writes the events.
            entry.wait_driver_done().await;
            entry.record_trimmed((from, to), TrimReason::Cleared)?;
        }
        Ok(to.saturating_sub(from))
    }

    /// The journal, for reading.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::Output`].
    pub fn journal(&self, caller: &Caller, id: &str) -> Result<Journal, Error> {
        self.inner.registry.find(caller, id)?.journal()
    }

    /// Follows output from a position on.
    ///
    /// # Errors
    /// As [`Engine::journal`].
    pub fn follow(&self, caller: &Caller, id: &str, from: Cursor) -> Result<OutputFollower, Error> {
        let entry = self.inner.registry.find(caller, id)?;
        let reader = Reader::new(entry.journal()?, from, entry.journal_end.subscribe());
        Ok(OutputFollower::new(reader, OutputWatchGuard::new(&entry)))
    }

    /// Watches one execution for changes.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub fn watch(&self, caller: &Caller, id: &str) -> Result<ExecutionWatch, Error> {
        Ok(ExecutionWatch::new(self.inner.registry.find(caller, id)?))
    }

    /// Ends the caller's session: finite executions stop and are cleaned, services and starts with
    /// `keep` pass to the project.
    ///
    /// # Errors
    /// The first stop that failed; the others are executed all the same.
    pub async fn end_session(&self, caller: &Caller) -> Result<(), Error> {
        session_end::end(&self.inner, caller).await
    }

    /// Lifecycle events of every execution from now on. A subscriber that lags receives the number
    /// of events it missed.
    #[must_use]
    pub fn subscribe(&self) -> broadcast::Receiver<LifecycleEvent> {
        self.inner.lifecycle_events.subscribe()
    }

    /// The number of executions that run, as a watch channel.
    #[must_use]
    pub fn running_count_watch(&self) -> watch::Receiver<u64> {
        self.inner.registry.running_count()
    }

    /// What the backend can enforce.
    #[must_use]
    pub fn capabilities(&self) -> &CapabilitySet {
        &self.inner.capabilities
    }

    /// The settings the engine was opened with.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.inner.settings
    }

    /// Shuts the engine down: executions that are not durable or whose id was not disclosed are
    /// stopped, the others run on without it. Every later request is refused.
    pub async fn shutdown(&self) {
        self.inner.closing.cancel();
        self.inner.tracker.close();
        self.inner.tracker.wait().await;
        self.inner.store_checkpoints();
        self.inner.backend.close().await;
        self.inner.release();
    }

    /// Resolves when the engine begins to shut down.
    pub async fn closing(&self) {
        self.inner.closing.cancelled().await;
    }

    /// A reader of the ledger; none after shutdown.
    #[must_use]
    pub fn ledger(&self) -> Option<LedgerReader> {
        self.inner.ledger_reader()
    }

    /// Resolves when everything of an ended execution is on disk; at once while it runs.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub async fn flushed(&self, caller: &Caller, id: &str) -> Result<(), Error> {
        let entry = self.inner.registry.find(caller, id)?;
        if entry.is_finished() {
            entry.wait_driver_done().await;
        }
        Ok(())
    }

    /// The events of one execution, oldest first.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::Output`] when its file cannot be read.
    pub fn events(
        &self,
        caller: &Caller,
        id: &str,
    ) -> Result<Vec<ostler_model::EventRecord>, Error> {
        let entry = self.inner.registry.find(caller, id)?;
        Ok(ostler_journal::read_events(&entry.dir)?)
    }

    async fn write_or_close(
        &self,
        caller: &Caller,
        id: &str,
        bytes: Vec<u8>,
        close: bool,
    ) -> Result<u64, Error> {
        let entry = self.inner.registry.find(caller, id)?;
        entry.leases.check(entry.id, None)?;
        let result = write_input(&entry, caller, bytes, close).await?;
        Ok(result.accepted)
    }
}

/// Writes the bytes as one unit, and returns the result.
pub(crate) async fn write_input(
    entry: &ExecutionHandle,
    caller: &Caller,
    bytes: Vec<u8>,
    close: bool,
) -> Result<WriteResult, Error> {
    submit_write(entry, caller, (bytes, close), WriteKind::Input).await
}

/// Submits bytes to the driver, and returns the result of the write.
pub(crate) async fn submit_write(
    entry: &ExecutionHandle,
    caller: &Caller,
    (bytes, close): (Vec<u8>, bool),
    purpose: WriteKind,
) -> Result<WriteResult, Error> {
    let (reply, result) = oneshot::channel();
    let by = caller.owner.principal.clone();
    let write = InputWrite {
        by,
        bytes,
        close,
        kind: purpose,
        reply,
    };
    entry.send_command(DriverCommand::Write(write)).await?;
    // A driver that is done returns nothing more.
    Ok(result.await.unwrap_or(Err(ControlError::Ended))?)
}

/// Forwards a command that needs no decision of the supervisor.
pub(crate) async fn forward_command(
    entry: &ExecutionHandle,
    command: ControlCommand,
) -> Result<(), Error> {
    let (reply, result) = oneshot::channel();
    entry
        .send_command(DriverCommand::Forward { command, reply })
        .await?;
    // A driver that is done returns nothing more.
    Ok(result.await.unwrap_or(Err(ControlError::Ended))?)
}
