//! What a context's lifecycle decides is done here: uses are stopped, files removed.

use futures_util::future::join_all;
use ostler_lifecycle::context::ContextInput;
use ostler_model::{ContextId, ExecutionId, Principal, StopReason};

use super::directory;
use super::manager::ContextManager;
use super::table::ContextWork;
use crate::overlay;
use crate::stop;

/// The reason of stops for a context that is removed.
const STOP_REASON: &str = "its context is removed";

impl ContextManager {
    pub(super) async fn perform(self, work: ContextWork) {
        match work {
            ContextWork::StopUses(id) => self.stop_uses(&id).await,
            ContextWork::CheckOverlay(execution) => self.check_overlay(execution).await,
            ContextWork::RemoveFiles(id) => self.remove_files(&id).await,
        }
    }

    async fn stop_uses(&self, id: &ContextId) {
        let by = self.table.get(id).map(|it| it.record.owner.principal);
        let executions = self.table.executions(id);
        let entries = executions
            .into_iter()
            .filter_map(|it| self.core.registry.get(it));
        let entries: Vec<_> = entries.collect();
        let order = stop_order(by);
        let stops = entries.iter().map(|entry| {
            let grace = self.core.grace_of(&entry.spec);
            stop::stop_and_wait(&self.core, entry, order.clone(), grace)
        });
        for stopped in join_all(stops).await {
            if let Err(error) = stopped {
                tracing::warn!(context = %id, %error, "an execution was not stopped");
            }
        }
        self.check_overlays(id).await;
    }

    /// As [`check_overlay`](Self::check_overlay), for every execution of the context that has ended.
    pub(super) async fn check_overlays(&self, id: &ContextId) {
        for execution in self.table.executions(id) {
            let entry = self.core.registry.get(execution);
            if entry.is_none_or(|it| it.is_finished()) {
                self.check_overlay(execution).await;
            }
        }
    }

    /// Ends the use of an execution that has ended, unless its overlay holds changes of the context's
    /// files that nobody has decided about. Where the context is being stopped, they are discarded.
    async fn check_overlay(&self, execution: ExecutionId) {
        let Some(is_stopped) = self.table.is_use_stopped(execution) else {
            return;
        };
        if let Some(entry) = self.core.registry.get(execution) {
            entry.wait_driver_done().await;
            let _maintenance = entry.maintenance_lock.lock().await;
            if is_stopped {
                overlay::discard(&self.core, &entry).await;
            } else if overlay::undecided_changes(&self.core, &entry)
                .await
                .is_some()
            {
                return;
            }
        }
        self.table.leave_execution(execution);
    }

    async fn remove_files(&self, id: &ContextId) {
        let Some(entry) = self.table.get(id) else {
            return;
        };
        let removing = tokio::task::spawn_blocking(move || directory::remove(&entry.record));
        let removed = removing
            .await
            .unwrap_or_else(|error| Err(error.to_string()));
        let input = match removed {
            Ok(()) => ContextInput::Removed,
            Err(problem) => {
                tracing::warn!(context = %id, %problem, "files of a context are left");
                ContextInput::RemovalFailed { problem }
            }
        };
        let _decision = self.table.handle(id, input);
        // Also while the engine shuts down.
        self.store_changes();
    }
}

fn stop_order(by: Option<Principal>) -> StopReason {
    match by {
        Some(by) => StopReason::Requested {
            by,
            reason: Some(STOP_REASON.to_owned()),
            force: false,
            interrupt: false,
        },
        None => StopReason::SessionEnded,
    }
}
