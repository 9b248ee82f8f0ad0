//! Orders about what an execution wrote to its overlay, on threads that may block.

use std::fs;
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::sync::Arc;

use ostler_model::{ExecutionId, Text, WorkspaceAnswer, WorkspaceOrder};
use ostler_sandbox::overlay::{Outcome, OverlayError, Store};

use super::supply::Supply;
use crate::place::WorkspaceError;

/// The directory of an overlay within that of its execution.
const OVERLAY: &str = "overlay";

/// Carries out one order. The work goes on when the asker is gone.
pub(super) async fn carry_out(
    supply: Arc<Supply>,
    id: ExecutionId,
    order: WorkspaceOrder,
) -> Result<WorkspaceAnswer, WorkspaceError> {
    let asked = Arc::clone(&supply);
    let answer = supply.blocking(move || Some(now(&asked, id, &order))).await;
    // Cut short only when the runtime ends.
    answer.unwrap_or(Err(WorkspaceError::None(id)))
}

fn now(
    supply: &Supply,
    id: ExecutionId,
    order: &WorkspaceOrder,
) -> Result<WorkspaceAnswer, WorkspaceError> {
    let failed = |error| told(id, error);
    let store = Store::open(&directory(supply, id)?).map_err(failed)?;
    let answer = match order {
        WorkspaceOrder::Changes { limit } => store.changes(*limit).map(WorkspaceAnswer::Changes),
        WorkspaceOrder::Diff { paths, limit_bytes } => {
            let diff = store.diff(paths, *limit_bytes);
            diff.map(|(text, truncated, autorun)| WorkspaceAnswer::Diff {
                text,
                truncated,
                autorun,
            })
        }
        WorkspaceOrder::Commit { allow_autorun } => {
            store.commit(*allow_autorun).map(|outcome| match outcome {
                Outcome::Committed(changes) => WorkspaceAnswer::Committed(changes),
                Outcome::Autorun(report) => WorkspaceAnswer::Autorun(report),
                Outcome::Conflicts(conflicts) => WorkspaceAnswer::Conflicts(conflicts),
            })
        }
        WorkspaceOrder::Discard => store.discard().map(|()| WorkspaceAnswer::Discarded),
    };
    answer.map_err(failed)
}

fn directory(supply: &Supply, id: ExecutionId) -> Result<PathBuf, WorkspaceError> {
    let executions = format!("/proc/self/fd/{}", supply.executions().as_raw_fd());
    let path = fs::read_link(&executions).map_err(|error| WorkspaceError::Storage {
        what: "cannot find",
        path: Text::from("executions"),
        reason: error.to_string(),
    })?;
    Ok(path.join(id.to_string()).join(OVERLAY))
}

fn told(id: ExecutionId, error: OverlayError) -> WorkspaceError {
    let reason = error.to_string();
    let (what, path, reason) = match error {
        OverlayError::None => return WorkspaceError::None(id),
        OverlayError::Decided { committed } => return WorkspaceError::Decided { id, committed },
        OverlayError::TooMany { what, .. } => ("cannot look at", Text::from(what), reason),
        OverlayError::Protected { path } => {
            let reason = "it is protected; nothing was committed".to_owned();
            ("cannot commit", path, reason)
        }
        OverlayError::Marked { path } => ("cannot lay an overlay over", path, reason),
        OverlayError::Damaged { name } => ("cannot read", Text::from(name), reason),
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
    WorkspaceError::Storage { what, path, reason }
}
