//! Replies to terminal queries (such as DSR) where no client's terminal gives them.
//!
//! Programs query the cursor position or the terminal's abilities, and some wait long for the
//! reply. The holder of the writer's lease has a terminal of its own, which replies; otherwise the
//! emulated screen does.

use std::sync::Arc;

use ostler_backend::TerminalQuery;
use ostler_terminal::device_reports;
use tokio::sync::oneshot;

use super::screen_cache::ScreenCache;
use crate::execution::{DriverCommand, ExecutionHandle, InputWrite, WriteKind};

/// Writes the reply to a terminal query that ended at an offset. It is not attributed to a caller
/// and is not an event.
pub(crate) async fn send_report(
    screens: &ScreenCache,
    entry: &Arc<ExecutionHandle>,
    query: TerminalQuery,
    end: u64,
) {
    if screens.leases().holder(entry.id).is_some() {
        return;
    }
    let bytes = match query {
        TerminalQuery::Status => device_reports::STATUS.to_vec(),
        TerminalQuery::Attributes => device_reports::ATTRIBUTES.to_vec(),
        TerminalQuery::Cursor => {
            // The cursor's position at the query: programs may continue printing before they read
            // the reply.
            let cursor = screens.with_screen_at(entry, end, |screen| screen.snapshot().cursor);
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
        is_secret: false,
        only_after: None,
        reply,
    };
    if entry
        .send_command(DriverCommand::Write(write))
        .await
        .is_ok()
    {
        // It may have ended meanwhile; the reply is then not awaited.
        let _ended = written.await.is_err();
    }
}
