//! What is done to a running tree's walls from outside: pausing it, and deciding about writes
//! that were kept apart.

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

/// How long a freeze may take until it is answered, in milliseconds: the order's way, and as
/// long as a place waits for every process to stand still.
const FREEZE_ANSWER_MS: u64 = 5_000;

/// The most changes one answer lists.
const CHANGES_MAX: usize = 100_000;
/// The longest diff of one answer, in bytes.
const DIFF_MAX_BYTES: usize = 8 * 1024 * 1024;

impl Engine {
    /// Freezes the whole tree; returns when it stands still. One that is paused already stays so.
    ///
    /// # Errors
    /// When the caller does not see it, it has ended, or it cannot be frozen.
    pub async fn pause(&self, caller: &Caller, id: &str) -> Result<ExecutionInfo, Error> {
        self.set_frozen(caller, id, true).await
    }

    /// Lets a frozen tree go on.
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
        // A driver that takes no more asks has just seen the end, or the engine's.
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
    /// When the caller does not see it, it has no overlay, it still runs (commit, discard), or
    /// that was decided before.
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
        // What was begun is finished and recorded when the asker is gone, too.
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
    /// Carries out an order, and records a decision.
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

    /// Records what became of changes, once.
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
                // Fails only where nobody listens.
                let _unheard = self.lifecycle_events.send(lifecycle_event).is_err();
            }
            Err(error) => tracing::error!(id = %entry.id, %error, "a decision is not on record"),
        }
    }

    /// How many changes of an ended execution wait for a decision: created, changed, deleted.
    /// None where none do.
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

    /// An execution is removed with its overlay: what waits for a decision is discarded, and
    /// the ledger says so. Answers whether something waited.
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
        // The layers may be deeper than a path is long; only the place takes them apart.
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

/// Whether what it wrote to its workspace was kept apart.
fn has_overlay(entry: &ExecutionHandle) -> bool {
    let sandbox = entry.spec.policy.confinement.as_ref();
    sandbox.is_some_and(|it| it.overlay && !it.without.contains(&Capability::Overlay))
}

/// The same order within what one answer may hold.
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

/// What an answer says of the fate of changes, where it is decided.
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
