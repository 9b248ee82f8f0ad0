//! The API of [`Engine`] for output and events.

use std::sync::Arc;

use ostler_journal::follow::JournalFollower as Reader;
use ostler_journal::{Journal, LedgerReader};
use ostler_model::event::TrimReason;
use ostler_model::{Caller, Cursor, Event, Principal, RequestedAction};
use tokio::sync::{broadcast, oneshot, watch};

use super::Engine;
use crate::engine_inner::EngineInner;
use crate::error::Error;
use crate::execution::{DriverCommand, ExecutionHandle, OutputWatchGuard};
use crate::follow::OutputFollower;
use crate::info::LifecycleEvent;
use crate::mirror;
use crate::retention;
use crate::terminal::{SCREEN_CATCH_UP_BYTES, ScreenCache};

impl Engine {
    /// Drops all output so far, also while it runs; returns how many bytes.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::ClearOutput`].
    pub async fn clear_output(&self, caller: &Caller, id: &str) -> Result<u64, Error> {
        let entry = self.inner.registry.find(caller, id)?;
        let by = caller.owner.principal.clone();
        let (core, screens) = (Arc::clone(&self.inner), Arc::clone(&self.screens));
        let clearing = clear_and_record(core, entry, screens, by);
        // It goes on when the caller is gone: what is dropped without a record looks lost.
        let clearing = self.inner.tracker.spawn(clearing);
        clearing.await.map_err(|_| Error::Closing)?
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

    /// Lifecycle events of every execution from now on. A subscriber that lags receives the number
    /// of events it missed.
    #[must_use]
    pub fn subscribe(&self) -> broadcast::Receiver<LifecycleEvent> {
        self.inner.lifecycle_events.subscribe()
    }

    /// The number of ledger entries so far, and its changes.
    #[must_use]
    pub fn ledger_end(&self) -> watch::Receiver<u64> {
        self.inner.ledger_end.subscribe()
    }

    /// A reader of the ledger; none after shutdown.
    #[must_use]
    pub fn ledger(&self) -> Option<LedgerReader> {
        self.inner.ledger_reader()
    }
}

async fn clear_and_record(
    core: Arc<EngineInner>,
    entry: Arc<ExecutionHandle>,
    screens: Arc<ScreenCache>,
    by: Principal,
) -> Result<u64, Error> {
    let journal = entry.journal()?;
    let _drop_guard = entry.begin_output_drop();
    let (from, to) = {
        let _maintenance = entry.maintenance_lock.lock().await;
        screens
            .checkpoint_screen(&entry, SCREEN_CATCH_UP_BYTES)
            .await;
        let work = tokio::task::spawn_blocking(move || journal.clear()).await;
        let gone = work
            .map_err(|_| Error::Closing)?
            .map_err(Error::ClearOutput)?;
        (gone.from, gone.to)
    };
    let dropped_bytes = to.saturating_sub(from);
    let action = RequestedAction::ClearOutput {
        bytes: dropped_bytes,
    };
    core.record_requested(&entry, action, by.clone());
    let (reply, recorded) = oneshot::channel();
    let command = DriverCommand::OutputCleared {
        from,
        to,
        by,
        reply,
    };
    // A command that is not taken drops the sender of its reply.
    let _taken = entry.send_command(command).await.is_ok();
    match recorded.await {
        Ok(cleared) => cleared.map_err(Error::ClearOutput)?,
        // The driver has processed the end; once it is done, this side writes the events.
        Err(_) => {
            entry.wait_driver_done().await;
            let reason = TrimReason::Cleared;
            let event = Event::Trimmed { from, to, reason };
            let durability = core.settings.durability;
            let recorded = core.with_disk_wait(|| entry.record_event(event, to, durability));
            clear_ended_mirror(&core, &entry).await?;
            recorded.map_err(Error::ClearOutput)?;
        }
    }
    Ok(dropped_bytes)
}

/// Removes cleared output from the mirror of an ended execution, and counts its files anew.
async fn clear_ended_mirror(
    core: &Arc<EngineInner>,
    entry: &Arc<ExecutionHandle>,
) -> Result<(), Error> {
    let _maintenance = entry.maintenance_lock.lock().await;
    let (core, entry) = (Arc::clone(core), Arc::clone(entry));
    let work = tokio::task::spawn_blocking(move || {
        let cleared = mirror::clear_ended(&entry, core.settings.mirror);
        retention::measure_again(&core, &entry);
        cleared
    });
    let cleared = work.await.map_err(|_| Error::Closing)?;
    cleared.map_err(Error::ClearOutput)
}
