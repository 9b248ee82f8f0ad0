//! Handles overlay requests, on threads that may block.

use std::fs;
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::sync::Arc;

use ostler_backend::OverlayRequestError;
use ostler_model::{ByteString, ExecutionId, OverlayOutcome, OverlayRequest, OverlayResponse};
use ostler_sandbox::overlay::{CommitOutcome, OverlayError, OverlayStore};

use super::shim_manager::ShimManager;

/// The directory of an overlay within that of its execution.
const OVERLAY: &str = "overlay";

/// Handles one request. The work continues when the caller is gone.
pub(super) async fn handle(
    shims: Arc<ShimManager>,
    id: ExecutionId,
    request: OverlayRequest,
    has_ended: bool,
) -> Result<OverlayResponse, OverlayRequestError> {
    let shared = Arc::clone(&shims);
    let response = shims
        .blocking(move || Some(handle_blocking(&shared, id, &request, has_ended)))
        .await;
    // Cancelled only when the runtime ends.
    response.unwrap_or(Err(OverlayRequestError::None(id)))
}

fn handle_blocking(
    shims: &ShimManager,
    id: ExecutionId,
    request: &OverlayRequest,
    has_ended: bool,
) -> Result<OverlayResponse, OverlayRequestError> {
    let failed = |error| map_error(id, error);
    let mut store = OverlayStore::open(&overlay_dir(shims, id)?).map_err(failed)?;
    if has_ended {
        store = store.of_ended_command();
    }
    let response = match request {
        OverlayRequest::Changes { limit } => store.changes(*limit).map(OverlayResponse::Changes),
        OverlayRequest::Diff { paths, limit_bytes } => {
            let diff = store.diff(paths, *limit_bytes);
            diff.map(|(text, truncated, changes)| OverlayResponse::Diff {
                text,
                truncated,
                changes,
            })
        }
        OverlayRequest::Commit { allow_autorun } => {
            store.commit(*allow_autorun).map(|outcome| match outcome {
                CommitOutcome::Committed(changes) => OverlayResponse::Committed(changes),
                CommitOutcome::Autorun(changes) => OverlayResponse::Autorun(changes),
                CommitOutcome::Conflicts(changes) => OverlayResponse::Conflicts(changes),
            })
        }
        OverlayRequest::Discard => store.discard().map(|kept| match kept.fate {
            // What an interrupted commit had written.
            OverlayOutcome::Committed => OverlayResponse::Committed(kept),
            OverlayOutcome::Discarded | OverlayOutcome::Open => OverlayResponse::Discarded,
        }),
    };
    response.map_err(failed)
}

fn overlay_dir(shims: &ShimManager, id: ExecutionId) -> Result<PathBuf, OverlayRequestError> {
    let executions = format!("/proc/self/fd/{}", shims.executions().as_raw_fd());
    let path = fs::read_link(&executions).map_err(|error| OverlayRequestError::Storage {
        what: "cannot find",
        path: ByteString::from("executions"),
        reason: error.to_string(),
    })?;
    Ok(path.join(id.to_string()).join(OVERLAY))
}

fn map_error(id: ExecutionId, error: OverlayError) -> OverlayRequestError {
    let reason = error.to_string();
    let (what, path, reason) = match error {
        OverlayError::None => return OverlayRequestError::None(id),
        OverlayError::Decided { committed } => {
            return OverlayRequestError::AlreadyResolved { id, committed };
        }
        OverlayError::TooMany { what, .. } => ("cannot look at", ByteString::from(what), reason),
        OverlayError::Protected { path } => {
            let reason = "it is protected; nothing was committed".to_owned();
            ("cannot commit", path, reason)
        }
        OverlayError::Marked { path } => ("cannot lay an overlay over", path, reason),
        OverlayError::Locked { path } => {
            let reason = "another process has locked it: perhaps a commit of another daemon is \
                          under way; commit again when it has ended";
            ("cannot commit to", path, reason.to_owned())
        }
        OverlayError::Damaged { name } => ("cannot read", ByteString::from(name), reason),
        OverlayError::Interrupted {
            what,
            path,
            source,
            done,
            of,
        } => {
            let reason =
                format!("{source}; {done} of {of} changes are on the host, the rest waits");
            (what, path, reason)
        }
        OverlayError::Io { what, path, source } => (what, path, source.to_string()),
    };
    OverlayRequestError::Storage { what, path, reason }
}
