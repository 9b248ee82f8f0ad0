//! The API of [`Engine`] that starts executions, waits for them and lists them.

use std::time::Duration;

use ostler_model::{Caller, ExecutionId};

use super::Engine;
use crate::admission::arguments;
use crate::error::Error;
use crate::info::{ExecutionInfo, QueuedStart, WaitEnd, WaitOutcome};
use crate::request::{ListFilter, StartRequest, WaitFor};
use crate::start::StartGuard;
use crate::wait;
use crate::watch::ExecutionWatch;

impl Engine {
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
        guard.commit()
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
        let guard = self.contexts.start(caller, request, true).await?;
        guard.wait_started().await?;
        Ok(guard)
    }

    /// Whether this request would be started now if a slot within the quota were free. Admission
    /// refuses what [`Engine::start`] refuses; where the policy requires an approval, a question is
    /// opened. Nothing is started, and an approval stays valid for the start.
    ///
    /// # Errors
    /// As [`Engine::start`].
    pub async fn check_start(&self, caller: &Caller, request: StartRequest) -> Result<(), Error> {
        self.contexts.check_start(caller, request).await
    }

    /// As [`Engine::start_guarded`], but returns before the program runs: one hop less for callers
    /// that wait for more than the spawn. [`ExecutionInfo::ensure_spawned`] reports whether it ran
    /// at all.
    ///
    /// # Errors
    /// Everything admission refuses.
    pub async fn start_unawaited(
        &self,
        caller: &Caller,
        request: StartRequest,
    ) -> Result<StartGuard, Error> {
        self.contexts.start(caller, request, false).await
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
        let guard = self.contexts.start(caller, request, false).await?;
        let mut outcome = guard.wait(&WaitFor::Exit, timeout).await?;
        if outcome.end == WaitEnd::TimedOut {
            outcome.info = guard.commit()?;
        }
        outcome.info.ensure_spawned()?;
        Ok(outcome)
    }

    /// Waits until a condition holds; the execution's end ends every wait. Where a service is
    /// replaced, a wait until it is ready continues with its replacement: the result is that one's.
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
        match until {
            WaitFor::Ready => Box::pin(self.services.wait_ready(caller, entry, timeout)).await,
            WaitFor::Nothing
            | WaitFor::Exit
            | WaitFor::Pattern(_)
            | WaitFor::PatternAfter(..)
            | WaitFor::PatternAfterInput(..)
            | WaitFor::OutputAfter(_)
            | WaitFor::Idle(_)
            | WaitFor::Prompt => wait::wait(&self.inner, &entry, until, timeout).await,
        }
    }

    /// The current state of one execution.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub fn info(&self, caller: &Caller, id: &str) -> Result<ExecutionInfo, Error> {
        Ok(self.inner.registry.find(caller, id)?.fresh_info())
    }

    /// Records that the client knows this id by another way than from its [`StartGuard`]: dropping
    /// that does not cancel the execution any more. Without effect for unknown ids.
    pub fn disclose(&self, caller: &Caller, id: &str) {
        if let Ok(entry) = self.inner.registry.find(caller, id) {
            entry.disclose_id();
        }
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
            .map(|entry| entry.fresh_info())
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
        visible
            .take(limit)
            .map(|entry| entry.fresh_info())
            .collect()
    }

    /// Watches one execution for changes.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub fn watch(&self, caller: &Caller, id: &str) -> Result<ExecutionWatch, Error> {
        Ok(ExecutionWatch::new(self.inner.registry.find(caller, id)?))
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
}
