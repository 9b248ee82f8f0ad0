//! Waits for readiness that continue with the execution that replaces the awaited one.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ostler_model::{Caller, REPLACED, TerminationCause};
use tokio::time::{Instant, timeout_at};

use super::caller_services::{CallerServices, manifest_path, name_of, plan_of};
use super::locks::ServiceKey;
use super::manager::ServiceManager;
use crate::error::Error;
use crate::execution::ExecutionHandle;
use crate::info::{WaitEnd, WaitOutcome};
use crate::request::WaitFor;
use crate::wait;

impl ServiceManager {
    /// Waits until the execution is ready, as [`wait::wait`] does; where it is replaced, until its
    /// replacement is.
    pub(crate) async fn wait_ready(
        &self,
        caller: &Caller,
        mut entry: Arc<ExecutionHandle>,
        timeout: Option<Duration>,
    ) -> Result<WaitOutcome, Error> {
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        loop {
            let left = deadline.map(|it| it.saturating_duration_since(Instant::now()));
            let outcome = wait::wait(&self.core, &entry, &WaitFor::Ready, left).await?;
            if outcome.end != WaitEnd::Exit || !was_replaced(&entry) {
                return Ok(outcome);
            }
            let replacement = self.find_replacement(caller, &entry);
            let found = match deadline {
                Some(deadline) => timeout_at(deadline, replacement).await.ok().flatten(),
                None => replacement.await,
            };
            match found {
                Some(replacement) => entry = replacement,
                None => return Ok(outcome),
            }
        }
    }

    /// The execution that replaced an ended one; none where it could not be started.
    async fn find_replacement(
        &self,
        caller: &Caller,
        ended: &Arc<ExecutionHandle>,
    ) -> Option<Arc<ExecutionHandle>> {
        let plan = plan_of(ended);
        if plan.name.is_empty() {
            return None;
        }
        let manifest = plan.defined_in.as_ref().and_then(manifest_path);
        let manifest = manifest.map(Path::to_owned);
        let key = ServiceKey::of_owner(&ended.owner(), manifest, &plan.name);
        // Whoever replaces a service holds its lock from the stop to the start.
        let _lock = self.services.locks.lock(key).await;
        let services = CallerServices::new(&self.core, caller);
        let scope = services.scope_of(ended);
        let project = ended.owner().project.clone();
        let is_same = |entry: &Arc<ExecutionHandle>| {
            name_of(entry) == plan.name
                && services.scope_of(entry) == scope
                && entry.owner().project == project
        };
        let newest = services.all().find(is_same)?;
        (newest.id != ended.id).then_some(newest)
    }
}

/// Whether it was stopped so that another execution takes its place.
fn was_replaced(entry: &ExecutionHandle) -> bool {
    let live = entry.live.borrow();
    let cause = live.state.ending.as_ref().map(|ending| &ending.cause);
    match cause {
        Some(TerminationCause::Stopped {
            reason: Some(reason),
        }) => reason.starts_with(REPLACED),
        Some(
            TerminationCause::Stopped { reason: None }
            | TerminationCause::Exited
            | TerminationCause::Signaled
            | TerminationCause::TimedOut { .. }
            | TerminationCause::OutOfMemory
            | TerminationCause::SpawnFailed { .. }
            | TerminationCause::Lost { .. },
        )
        | None => false,
    }
}
