//! The API of [`Engine`] for what executions use over time.

use std::time::Duration;

use ostler_model::{Caller, UsageSample};
use tokio::sync::broadcast;
use tokio::time::{Instant, sleep_until};

use super::Engine;
use crate::alert::AlertNotice;
use crate::error::Error;
use crate::monitor::{UsageHistory, UsageHistoryQuery};

impl Engine {
    /// Alerts that are raised and resolved from now on. A subscriber that lags more than 256 behind
    /// learns how many it missed; the ledger has them all.
    #[must_use]
    pub fn subscribe_alerts(&self) -> broadcast::Receiver<AlertNotice> {
        self.alerts.subscribe()
    }

    /// The samples of an execution that a query selects; where there are none yet and it has not
    /// ended, waits for them for at most `timeout`. Samples are kept in memory: until an execution is
    /// removed or 64 later ones have ended, and only of this engine.
    ///
    /// # Errors
    /// When the caller does not see it; [`Error::Closing`].
    pub async fn usage_history(
        &self,
        caller: &Caller,
        id: &str,
        query: UsageHistoryQuery,
        timeout: Duration,
    ) -> Result<UsageHistory, Error> {
        let deadline = Instant::now() + timeout;
        let mut changes = self.inner.usage_monitor.changes();
        loop {
            changes.borrow_and_update();
            let info = self.info(caller, id)?;
            let history = self.inner.usage_monitor.history(info.id, query);
            if !history.points.is_empty() || info.state.is_finished() || Instant::now() >= deadline
            {
                return Ok(history);
            }
            if !timeout.is_zero() {
                self.inner.usage_monitor.watch(info.id);
            }
            tokio::select! {
                biased;
                () = self.inner.closing.cancelled() => return Err(Error::Closing),
                changed = changes.changed() => changed.map_err(|_| Error::Closing)?,
                () = sleep_until(deadline) => {}
            }
        }
    }

    /// Watches an execution: for the next five seconds it is sampled every second, instead of every
    /// 10 seconds. One that has ended is not sampled.
    ///
    /// # Errors
    /// When the caller does not see it.
    pub fn watch_usage(&self, caller: &Caller, id: &str) -> Result<(), Error> {
        let info = self.info(caller, id)?;
        self.inner.usage_monitor.watch(info.id);
        Ok(())
    }

    /// The newest sample of an execution; none before the first one.
    ///
    /// # Errors
    /// When the caller does not see it.
    pub fn last_usage(&self, caller: &Caller, id: &str) -> Result<Option<UsageSample>, Error> {
        let info = self.info(caller, id)?;
        Ok(self.inner.usage_monitor.last_sample(info.id))
    }

    /// What an execution uses now; of one that has ended, its last sample. The counters are those of
    /// [`Engine::usage_history`], the processor time is that since the last sample, or where that is
    /// younger than a second, that of the last sample.
    ///
    /// # Errors
    /// When the caller does not see it.
    pub async fn usage_now(&self, caller: &Caller, id: &str) -> Result<Option<UsageSample>, Error> {
        let info = self.info(caller, id)?;
        let monitor = &self.inner.usage_monitor;
        let sample = if info.state.is_finished() {
            None
        } else {
            monitor.sample_now(info.id).await
        };
        Ok(sample.or_else(|| monitor.last_sample(info.id)))
    }
}
