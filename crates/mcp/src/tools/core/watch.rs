//! Pattern watches that a start asks for, and the reply that mentions them.

use ostler_engine::WaitOutcome;
use ostler_journal::Pattern;

use crate::reply::ToolReply;
use crate::tool_call::ToolCall;
use crate::tools::execution::execution_reply;
use crate::tools::params::output_range::OutputSelection;

/// The status and the output; starts a pattern watch if one is requested.
pub(in crate::tools) async fn reply_with_watch(
    call: ToolCall<'_>,
    waited: &WaitOutcome,
    notify: Option<Pattern>,
    selection: &OutputSelection,
) -> ToolReply {
    let watch_problem = notify.map(|pattern| start_watch(call, waited, pattern));
    let mut reply = match execution_reply::execution_reply(call, waited, selection).await {
        Ok(shown) => shown,
        // It runs or ran, so its id must be reported.
        Err(failure) => execution_reply::status_line(call, waited).with_note(&failure.message()),
    };
    if let Some(problem) = watch_problem.flatten() {
        reply = reply.with_note(&problem);
    }
    let reply = reply.into_reply();
    match execution_reply::ending_failure(&waited.info) {
        Some(failure) => reply.with_failure(failure),
        None => reply,
    }
}

/// Starts a pattern watch for the agent; returns a note where that fails. An ended execution needs
/// no watch.
pub(super) fn start_watch(
    call: ToolCall<'_>,
    waited: &WaitOutcome,
    pattern: Pattern,
) -> Option<String> {
    let info = &waited.info;
    if info.state.is_finished() {
        return None;
    }
    let watching = call.state.notifications().watch_pattern(
        call.caller,
        &info.id.short(),
        pattern,
        info.cursor(),
    );
    let failure = watching.err()?;
    Some(format!("no line is watched for: {}", failure.message()))
}
