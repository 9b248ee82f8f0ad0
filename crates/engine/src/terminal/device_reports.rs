//! Replies to terminal queries (such as DSR) where no client's terminal gives them.
//!
//! Programs query the cursor position or the terminal's abilities, and some wait long for the
//! reply. The holder of the writer's lease has a terminal of its own, which replies; otherwise the
//! emulated screen does.

use std::sync::Arc;

use ostler_backend::TerminalQuery;
use ostler_terminal::device_reports;
use tokio::sync::oneshot;

use crate::driver::{DriverCommand, InputWrite, WriteKind};
use crate::engine_inner::EngineInner;
use crate::execution::ExecutionHandle;

/// Writes the reply to a terminal query that ended at an offset. It is not attributed to anybody
/// and is no event.
pub(crate) async fn send_report(
    core: Arc<EngineInner>,
    entry: Arc<ExecutionHandle>,
    (query, end): (TerminalQuery, u64),
) {
    if entry.leases.holder().is_some() {
        return;
    }
    let bytes = match query {
        TerminalQuery::Status => device_reports::STATUS.to_vec(),
        TerminalQuery::Attributes => device_reports::ATTRIBUTES.to_vec(),
        TerminalQuery::Cursor => {
            // Where it stood when it was asked for: programs go on before they read the answer.
            let cursor = core.with_screen_at(&entry, end, |screen| screen.snapshot().cursor);
            match cursor.await {
                Ok(Some(cursor)) => device_reports::cursor_position(cursor),
                Ok(None) => return,
                Err(error) => {
                    tracing::warn!(id = %entry.id, %error, "its cursor is not told");
                    return;
                }
            }
        }
    };
    let (reply, written) = oneshot::channel();
    let write = InputWrite {
        by: entry.owner().principal.clone(),
        bytes,
        close: false,
        kind: WriteKind::TerminalReply,
        reply,
    };
    if entry
        .send_command(DriverCommand::Write(write))
        .await
        .is_ok()
    {
        // It may have ended meanwhile; then nobody waits for the reply.
        let _ended = written.await.is_err();
    }
}
