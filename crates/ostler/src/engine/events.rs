//! The methods that report events of executions.

use std::time::Duration;

use ostler_engine::{AlertNotice, Error, EventFeedPage, EventFeedQuery, LifecycleEvent};
use ostler_journal::{LedgerCursor, LedgerReader};
use ostler_model::{Caller, EventRecord};
use tokio::sync::broadcast;

use super::Engine;

impl Engine {
    /// The events of one execution, oldest first.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::Output`] when its file cannot be read.
    pub fn events(&self, caller: &Caller, id: &str) -> Result<Vec<EventRecord>, Error> {
        self.0.events(caller, id)
    }

    /// Lifecycle events of every execution from now on. A subscriber that lags receives the number
    /// of events it missed.
    #[must_use]
    pub fn subscribe(&self) -> broadcast::Receiver<LifecycleEvent> {
        self.0.subscribe()
    }

    /// Alerts of every execution that are raised and resolved from now on: by the thresholds of its
    /// start ([`StartOptions::alerts`](crate::StartOptions::alerts)), else those of
    /// [`Settings::alerts`](crate::Settings::alerts), else nine tenths of its limits. A subscriber
    /// that lags more than 256 behind receives the number of alerts it missed; the ledger has them
    /// all.
    #[must_use]
    pub fn subscribe_alerts(&self) -> broadcast::Receiver<AlertNotice> {
        self.0.subscribe_alerts()
    }

    /// Lifecycle events that the caller sees, refused starts among them; where there are none yet,
    /// waits for them for at most `timeout`. Each call scans at most 1,000 entries.
    ///
    /// # Errors
    /// [`Error::Output`] when the ledger cannot be read, [`Error::Closing`].
    pub async fn poll_events(
        &self,
        caller: &Caller,
        query: EventFeedQuery,
        timeout: Duration,
    ) -> Result<EventFeedPage, Error> {
        self.0.poll_events(caller, query, timeout).await
    }

    /// The events before a position that the caller sees, newest first, at most `limit`, and where to
    /// continue. Each call scans at most 1,000 entries.
    ///
    /// # Errors
    /// As [`Engine::poll_events`].
    pub async fn events_before(
        &self,
        caller: &Caller,
        before: LedgerCursor,
        limit: usize,
    ) -> Result<EventFeedPage, Error> {
        self.0.events_before(caller, before, limit).await
    }

    /// A reader of the ledger; none after shutdown.
    #[must_use]
    pub fn ledger(&self) -> Option<LedgerReader> {
        self.0.ledger()
    }
}
