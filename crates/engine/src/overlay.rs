//! The overlay workspace of an execution: decisions about what it wrote there, each recorded once.

use std::sync::Arc;

use ostler_backend::OverlayRequestError;
use ostler_journal::LedgerEntry;
use ostler_model::{
    ByteString, Capability, Event, OverlayChanges, OverlayOutcome, OverlayRequest, OverlayResponse,
    Owner, Principal, Timestamp,
};

use crate::admission::secrets;
use crate::engine_inner::{EngineInner, LedgerDetail};
use crate::error::Error;
use crate::execution::ExecutionHandle;
use crate::info::LifecycleEvent;
use crate::secret_texts::SecretTexts;

/// The most changes one result lists.
const CHANGES_MAX: usize = 100_000;
/// The longest diff of one result, in bytes.
const DIFF_MAX_BYTES: usize = 8 * 1024 * 1024;

/// Lists, shows, commits or discards what an execution wrote to its overlay.
///
/// # Errors
/// When it has no overlay, it still runs (commit, discard), or a decision was already made.
pub(crate) async fn handle(
    core: &Arc<EngineInner>,
    entry: Arc<ExecutionHandle>,
    by: Principal,
    request: OverlayRequest,
) -> Result<OverlayResponse, Error> {
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
    let inner = Arc::clone(core);
    // An operation that has begun is finished and recorded even if its caller is dropped.
    let work = core.tracker.spawn(async move {
        let _maintenance = match entry.is_finished() {
            true => {
                entry.wait_driver_done().await;
                Some(entry.maintenance_lock.lock().await)
            }
            false => None,
        };
        let response = execute_request(&inner, &entry, by, clamp_limits(request)).await;
        response.map(|response| redact(&inner, &entry, response))
    });
    Ok(work.await.map_err(|_| Error::Closing)??)
}

/// Replaces the secrets of the execution, as far as the engine knows them, in diffs and paths: what a
/// command wrote to files is shown as what it printed is.
fn redact(
    core: &EngineInner,
    entry: &ExecutionHandle,
    mut response: OverlayResponse,
) -> OverlayResponse {
    let settings = &core.settings;
    let known = secrets::known_secrets(settings, &entry.spec.env.secrets, &settings.base_env);
    if known.is_empty() {
        return response;
    }
    let texts = SecretTexts::new(&known);
    if let OverlayResponse::Diff { text, .. } = &mut response {
        *text = texts.redact(&ByteString::from(text.as_str())).to_string();
    }
    if let Some(changes) = response.changes_mut() {
        for change in &mut changes.changes {
            change.path = texts.redact(&change.path);
        }
        for conflict in &mut changes.changed_on_host {
            conflict.path = texts.redact(&conflict.path);
        }
    }
    response
}

/// Executes an overlay request, and records a commit or discard.
async fn execute_request(
    core: &EngineInner,
    entry: &ExecutionHandle,
    by: Principal,
    request: OverlayRequest,
) -> Result<OverlayResponse, OverlayRequestError> {
    let response = request_overlay(core, entry, request).await;
    if let Some(outcome) = decided_outcome(&response) {
        record_outcome(core, entry, outcome, by, LedgerDetail::new());
    }
    response
}

/// Passes a request to the backend, which may open what a command that has ended closed.
async fn request_overlay(
    core: &EngineInner,
    entry: &ExecutionHandle,
    request: OverlayRequest,
) -> Result<OverlayResponse, OverlayRequestError> {
    let has_ended = entry.is_finished();
    core.backend.overlay(entry.id, request, has_ended).await
}

/// Records the decision about the changes, once.
fn record_outcome(
    core: &EngineInner,
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
    core.write_ledger(&LedgerEntry {
        at: Timestamp::now(),
        execution: Some(entry.id),
        by: Owner::clone(&owner),
        event: event.clone(),
        detail,
    });
    let durability = core.settings.durability;
    match core.with_disk_wait(|| entry.record_event(event, offset, durability)) {
        Ok(record) => {
            let lifecycle_event = LifecycleEvent {
                id: entry.id,
                owner,
                record: Arc::new(record),
            };
            // Fails only where there is no subscriber.
            let _unheard = core.lifecycle_events.send(lifecycle_event).is_err();
        }
        Err(error) => tracing::error!(id = %entry.id, %error, "a decision is not on record"),
    }
    core.notify(|observer| observer.overlay_decided(entry.id));
}

/// What an execution wrote to its overlay so far, where no decision was made about it; none where it
/// has no overlay, or the changes cannot be read.
pub(crate) async fn open_changes(
    core: &EngineInner,
    entry: &ExecutionHandle,
) -> Option<OverlayChanges> {
    if !has_overlay(entry) {
        return None;
    }
    let request = OverlayRequest::Changes { limit: CHANGES_MAX };
    let OverlayResponse::Changes(changes) = request_overlay(core, entry, request).await.ok()?
    else {
        return None;
    };
    (changes.fate == OverlayOutcome::Open).then_some(changes)
}

/// How many changes of an ended execution wait for a decision: created, changed, deleted. None
/// where no change waits.
pub(crate) async fn undecided_changes(
    core: &EngineInner,
    entry: &ExecutionHandle,
) -> Option<[u64; 3]> {
    if !may_hold_changes(entry) {
        return None;
    }
    let request = OverlayRequest::Changes { limit: 0 };
    undecided_totals(&request_overlay(core, entry, request).await)
}

/// Whether changes wait for a decision, or may come: while it runs.
pub(crate) async fn may_be_undecided(core: &EngineInner, entry: &ExecutionHandle) -> bool {
    let is_running = has_overlay(entry) && !entry.is_finished();
    is_running || undecided_changes(core, entry).await.is_some()
}

fn undecided_totals(response: &Result<OverlayResponse, OverlayRequestError>) -> Option<[u64; 3]> {
    match response {
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

/// Discards the undecided changes of an execution that is removed with its overlay, and records in
/// the ledger what became of them: also what a commit that was interrupted has written. Returns
/// whether changes were discarded.
pub(crate) async fn discard(core: &EngineInner, entry: &ExecutionHandle) -> bool {
    if !may_hold_changes(entry) {
        return false;
    }
    let by = entry.owner().principal.clone();
    let request = OverlayRequest::Changes { limit: 0 };
    let before = request_overlay(core, entry, request).await;
    let undecided = undecided_totals(&before);
    if let Some(totals) = undecided {
        let detail = removal_detail(totals);
        record_outcome(core, entry, OverlayOutcome::Discarded, by.clone(), detail);
    } else if let Some(outcome) = decided_outcome(&before) {
        // The request has resumed a commit.
        record_outcome(core, entry, outcome, by.clone(), LedgerDetail::new());
    }
    // The layers may be deeper than a path is long; only the backend can remove them.
    match request_overlay(core, entry, OverlayRequest::Discard).await {
        // A commit that could not be resumed.
        Ok(OverlayResponse::Committed(kept)) => {
            let detail = removal_detail(kept.totals);
            record_outcome(core, entry, OverlayOutcome::Committed, by, detail);
        }
        Ok(_) | Err(OverlayRequestError::None(_) | OverlayRequestError::AlreadyResolved { .. }) => {
        }
        Err(error @ (OverlayRequestError::Running(_) | OverlayRequestError::Storage { .. })) => {
            tracing::warn!(id = %entry.id, %error, "an overlay cannot be discarded");
        }
    }
    undecided.is_some()
}

/// The details of a decision that the removal of an execution made.
fn removal_detail([created, changed, deleted]: [u64; 3]) -> LedgerDetail {
    let mut detail = LedgerDetail::new();
    detail.insert("reason".to_owned(), "cleaned".into());
    detail.insert("created".to_owned(), created.into());
    detail.insert("changed".to_owned(), changed.into());
    detail.insert("deleted".to_owned(), deleted.into());
    detail
}

/// Whether it has an overlay about which nothing was decided: there may be changes in it.
pub(crate) fn may_hold_changes(entry: &ExecutionHandle) -> bool {
    has_overlay(entry) && entry.info().state.workspace.is_none()
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
