//! Control of a running process tree from outside: freezing and thawing it, and decisions about the
//! changes in its overlay workspace.

use std::sync::Arc;
use std::time::Duration;

use ostler_backend::{ControlError, OverlayRequestError};
use ostler_journal::LedgerEntry;
use ostler_model::{
    Caller, Capability, Event, OverlayOutcome, OverlayRequest, OverlayResponse, Owner, Principal,
    Timestamp,
};
use tokio::sync::oneshot;

use crate::driver::{DriverCommand, FreezeRequest};
use crate::engine::Engine;
use crate::engine_inner::{EngineInner, LedgerDetail};
use crate::error::Error;
use crate::execution::ExecutionHandle;
use crate::info::{ExecutionInfo, LifecycleEvent};

/// How long a freeze may take until its result arrives, in milliseconds: the command's way to the
/// driver, plus the longest a backend waits for every process to be frozen.
const FREEZE_ANSWER_MS: u64 = 5_000;

/// The most changes one result lists.
const CHANGES_MAX: usize = 100_000;
/// The longest diff of one result, in bytes.
const DIFF_MAX_BYTES: usize = 8 * 1024 * 1024;

impl Engine {
    /// Freezes the whole tree; returns when it is frozen. A paused tree stays paused.
    ///
    /// # Errors
    /// When the caller does not see it, it has ended, or it cannot be frozen.
    pub async fn pause(&self, caller: &Caller, id: &str) -> Result<ExecutionInfo, Error> {
        self.set_frozen(caller, id, true).await
    }

    /// Thaws a frozen tree.
    ///
    /// # Errors
    /// As for [`Engine::pause`].
    pub async fn resume(&self, caller: &Caller, id: &str) -> Result<ExecutionInfo, Error> {
        self.set_frozen(caller, id, false).await
    }

    async fn set_frozen(
        &self,
        caller: &Caller,
        id: &str,
        frozen: bool,
    ) -> Result<ExecutionInfo, Error> {
        let entry = self.inner.registry.find(caller, id)?;
        let freeze_error = |reason: &str| Error::Freeze {
            id: entry.id,
            verb: if frozen { "paused" } else { "resumed" },
            reason: reason.to_owned(),
        };
        let (reply, outcome) = oneshot::channel();
        let freeze = FreezeRequest {
            frozen,
            by: caller.owner.principal.clone(),
            reply,
        };
        // A driver that accepts no more commands has just seen the end of the execution or of the
        // engine.
        if entry
            .send_command(DriverCommand::Freeze(freeze))
            .await
            .is_err()
        {
            return Err(freeze_error("it has ended"));
        }
        let limit = Duration::from_millis(FREEZE_ANSWER_MS);
        match tokio::time::timeout(limit, outcome).await {
            Ok(Ok(Ok(true))) => Ok(entry.fresh_info()),
            Ok(Ok(Ok(false))) => Err(freeze_error("not all of its processes could be made to")),
            Ok(Ok(Err(ControlError::Ended))) => Err(freeze_error("it is not running")),
            Ok(Ok(Err(error))) => Err(freeze_error(&error.to_string())),
            Ok(Err(_)) => Err(freeze_error("it has ended")),
            Err(_) => Err(freeze_error("its shim does not answer")),
        }
    }

    /// Lists, shows, commits or discards what an execution wrote to its overlay.
    ///
    /// # Errors
    /// When the caller does not see it, it has no overlay, it still runs (commit, discard), or a
    /// decision was already made.
    pub async fn handle_overlay(
        &self,
        caller: &Caller,
        id: &str,
        request: OverlayRequest,
    ) -> Result<OverlayResponse, Error> {
        let entry = self.inner.registry.find(caller, id)?;
        if !has_overlay(&entry) {
            return Err(OverlayRequestError::None(entry.id).into());
        }
        let is_decision = match &request {
            OverlayRequest::Commit { .. } | OverlayRequest::Discard => true,
            OverlayRequest::Changes { .. } | OverlayRequest::Diff { .. } => false,
        };
        if is_decision && !entry.is_finished() {
            return Err(OverlayRequestError::Running(entry.id).into());
        }
        let by = caller.owner.principal.clone();
        let core = Arc::clone(&self.inner);
        // An operation that has begun is finished and recorded even when its caller is gone.
        let work = self.inner.tracker.spawn(async move {
            let _maintenance = match entry.is_finished() {
                true => {
                    entry.wait_driver_done().await;
                    Some(entry.maintenance_lock.lock().await)
                }
                false => None,
            };
            core.execute_overlay_request(&entry, by, clamp_limits(request))
                .await
        });
        Ok(work.await.map_err(|_| Error::Closing)??)
    }
}

impl EngineInner {
    /// Executes an overlay request, and records a commit or discard.
    async fn execute_overlay_request(
        &self,
        entry: &ExecutionHandle,
        by: Principal,
        request: OverlayRequest,
    ) -> Result<OverlayResponse, OverlayRequestError> {
        let response = self.backend.overlay(entry.id, request).await;
        if let Some(outcome) = decided_outcome(&response) {
            self.record_overlay_outcome(entry, outcome, by, LedgerDetail::new());
        }
        response
    }

    /// Records the decision about the changes, once.
    fn record_overlay_outcome(
        &self,
        entry: &ExecutionHandle,
        outcome: OverlayOutcome,
        by: Principal,
        detail: LedgerDetail,
    ) {
        if entry.info().state.workspace.is_some() {
            return;
        }
        let offset = entry.journal_end.borrow().end;
        let event = Event::Workspace { fate: outcome, by };
        let owner = entry.owner();
        self.write_ledger(&LedgerEntry {
            at: Timestamp::now(),
            execution: Some(entry.id),
            by: Owner::clone(&owner),
            event: event.clone(),
            detail,
        });
        match entry.record_event(event, offset) {
            Ok(record) => {
                let lifecycle_event = LifecycleEvent {
                    id: entry.id,
                    owner,
                    record: Arc::new(record),
                };
                // Fails only where there is no subscriber.
                let _unheard = self.lifecycle_events.send(lifecycle_event).is_err();
            }
            Err(error) => tracing::error!(id = %entry.id, %error, "a decision is not on record"),
        }
    }

    /// How many changes of an ended execution wait for a decision: created, changed, deleted. None
    /// where no change waits.
    pub(crate) async fn undecided_changes(&self, entry: &ExecutionHandle) -> Option<[u64; 3]> {
        if !has_overlay(entry) || entry.info().state.workspace.is_some() {
            return None;
        }
        let request = OverlayRequest::Changes { limit: 0 };
        match self.backend.overlay(entry.id, request).await {
            Ok(OverlayResponse::Changes(changes)) => (changes.fate == OverlayOutcome::Open
                && changes.totals != [0; 3])
                .then_some(changes.totals),
            Ok(
                OverlayResponse::Diff { .. }
                | OverlayResponse::Committed(_)
                | OverlayResponse::Autorun(_)
                | OverlayResponse::Conflicts(_)
                | OverlayResponse::Discarded,
            )
            | Err(_) => None,
        }
    }

    /// Discards the undecided changes of an execution that is removed with its overlay, and records
    /// that in the ledger. Returns whether there were any.
    pub(crate) async fn discard_overlay(&self, entry: &ExecutionHandle) -> bool {
        if !has_overlay(entry) || entry.info().state.workspace.is_some() {
            return false;
        }
        let undecided = self.undecided_changes(entry).await;
        if let Some([created, changed, deleted]) = undecided {
            let mut detail = LedgerDetail::new();
            detail.insert("reason".to_owned(), "cleaned".into());
            detail.insert("created".to_owned(), created.into());
            detail.insert("changed".to_owned(), changed.into());
            detail.insert("deleted".to_owned(), deleted.into());
            let by = entry.owner().principal.clone();
            self.record_overlay_outcome(entry, OverlayOutcome::Discarded, by, detail);
        }
        // The layers may be deeper than a path is long; only the backend can remove them.
        match self
            .backend
            .overlay(entry.id, OverlayRequest::Discard)
            .await
        {
            Ok(_)
            | Err(OverlayRequestError::None(_) | OverlayRequestError::AlreadyResolved { .. }) => {}
            Err(
                error @ (OverlayRequestError::Running(_) | OverlayRequestError::Storage { .. }),
            ) => {
                tracing::warn!(id = %entry.id, %error, "an overlay cannot be discarded");
            }
        }
        undecided.is_some()
    }
}

/// Whether writes to its workspace went to an overlay.
fn has_overlay(entry: &ExecutionHandle) -> bool {
    let sandbox = entry.spec.policy.confinement.as_ref();
    sandbox.is_some_and(|it| it.overlay && !it.without.contains(&Capability::Overlay))
}

/// The same request, clamped to what one result may hold.
fn clamp_limits(request: OverlayRequest) -> OverlayRequest {
    match request {
        OverlayRequest::Changes { limit } => OverlayRequest::Changes {
            limit: limit.min(CHANGES_MAX),
        },
        OverlayRequest::Diff { paths, limit_bytes } => OverlayRequest::Diff {
            paths,
            limit_bytes: limit_bytes.min(DIFF_MAX_BYTES),
        },
        decision @ (OverlayRequest::Commit { .. } | OverlayRequest::Discard) => decision,
    }
}

/// What a result says about the decision on the changes, once there is one.
fn decided_outcome(
    response: &Result<OverlayResponse, OverlayRequestError>,
) -> Option<OverlayOutcome> {
    match response {
        Ok(OverlayResponse::Changes(changes) | OverlayResponse::Committed(changes)) => {
            (changes.fate != OverlayOutcome::Open).then_some(changes.fate)
        }
        Ok(OverlayResponse::Discarded)
        | Err(OverlayRequestError::AlreadyResolved {
            committed: false, ..
        }) => Some(OverlayOutcome::Discarded),
        Err(OverlayRequestError::AlreadyResolved {
            committed: true, ..
        }) => Some(OverlayOutcome::Committed),
        Ok(
            OverlayResponse::Diff { .. }
            | OverlayResponse::Autorun(_)
            | OverlayResponse::Conflicts(_),
        )
        | Err(
            OverlayRequestError::None(_)
            | OverlayRequestError::Running(_)
            | OverlayRequestError::Storage { .. },
        ) => None,
    }
}
