//! The methods that list executions and report their state.

use std::path::PathBuf;
use std::time::Duration;

use ostler_engine::{
    Error, ExecutionInfo, ExecutionWatch, ListFilter, QueuedStart, UsageHistory, UsageHistoryQuery,
};
use ostler_model::{Caller, ExecutionId, SnapshotRequest, TreeSnapshot};
use tokio::sync::watch;

use super::Engine;

impl Engine {
    /// The current state of one execution.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub fn info(&self, caller: &Caller, id: &str) -> Result<ExecutionInfo, Error> {
        self.0.info(caller, id)
    }

    /// The executions that the caller sees and the filter accepts, newest first.
    #[must_use]
    pub fn list(&self, caller: &Caller, filter: &ListFilter) -> Vec<ExecutionInfo> {
        self.0.list(caller, filter)
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
        self.0.list_page(caller, before, limit)
    }

    /// How many of the executions the caller sees run now.
    #[must_use]
    pub fn running_count(&self, caller: &Caller) -> u64 {
        self.0.running_count(caller)
    }

    /// The number of executions that run, as a watch channel.
    #[must_use]
    pub fn running_count_watch(&self) -> watch::Receiver<u64> {
        self.0.running_count_watch()
    }

    /// The queue position of the start with this id, which its client chose; none where it does not
    /// wait for a slot within the quota.
    #[must_use]
    pub fn queued_start(&self, caller: &Caller, id: ExecutionId) -> Option<QueuedStart> {
        self.0.queued_start(caller, id)
    }

    /// Watches one execution for changes.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub fn watch(&self, caller: &Caller, id: &str) -> Result<ExecutionWatch, Error> {
        self.0.watch(caller, id)
    }

    /// Resolves when everything of an ended execution is on disk; at once while it runs.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub async fn flushed(&self, caller: &Caller, id: &str) -> Result<(), Error> {
        self.0.flushed(caller, id).await
    }

    /// Takes a snapshot of an execution's processes; an ended execution has none.
    ///
    /// # Errors
    /// When the caller does not see it.
    pub async fn tree_snapshot(
        &self,
        caller: &Caller,
        id: &str,
        request: SnapshotRequest,
    ) -> Result<TreeSnapshot, Error> {
        self.0.tree_snapshot(caller, id, request).await
    }

    /// What an execution used over time; where no sample is selected yet, waits for one for at most
    /// `timeout`. Samples are taken every 10 seconds, kept in memory, and lost with the engine.
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
        self.0.usage_history(caller, id, query, timeout).await
    }

    /// Watches an execution: for the next five seconds it is sampled every second.
    ///
    /// # Errors
    /// When the caller does not see it.
    pub fn watch_usage(&self, caller: &Caller, id: &str) -> Result<(), Error> {
        self.0.watch_usage(caller, id)
    }

    /// The directory of an execution's files.
    ///
    /// # Errors
    /// When the caller does not see it.
    pub fn execution_dir(&self, caller: &Caller, id: &str) -> Result<PathBuf, Error> {
        self.0.execution_dir(caller, id)
    }
}
