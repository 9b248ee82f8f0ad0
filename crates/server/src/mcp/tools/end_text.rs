//! What tools say of a command's end, and of what a wait for it came to, whatever document they
//! are of.

use ostler_engine::{ExecutionInfo, WaitEnd};
use ostler_model::termination::{Termination, TerminationCause};
use ostler_model::{ErrorCode, Lifetime};

use super::command::status::seconds;
use super::isolation_params;
use crate::error::ApiError;
use crate::mcp::context::ToolCall;
use crate::mcp::output::OutputBlocks;

/// Its exit code; `null` and the signal where one ended it.
pub(super) fn exit_code_text(ending: &Termination) -> String {
    match (ending.code, ending.signal) {
        (Some(code), _) => code.to_string(),
        (None, Some(signal)) => format!("null (ended by {signal})"),
        (None, None) => "null".to_owned(),
    }
}

/// What ends it while it goes on.
pub(super) fn time_limit_text(info: &ExecutionInfo) -> String {
    match &info.spec.lifetime {
        Lifetime::Finite {
            timeout: Some(timeout),
            ..
        } => format!("its timeout of {} s still holds", seconds(*timeout)),
        Lifetime::Finite { timeout: None, .. } | Lifetime::Service { .. } => {
            "it has no timeout".to_owned()
        }
    }
}

/// Adds what is to be known of the output, the journal and the walls.
pub(super) async fn add_notes(
    text: &mut String,
    (call, info): (ToolCall<'_>, &ExecutionInfo),
    output: &OutputBlocks,
) {
    for line in output.notes.iter().chain(&info.state.degraded) {
        add_note(text, line);
    }
    for line in isolation_params::isolation_notes(call, info) {
        add_note(text, &line);
    }
    if let Some(line) = isolation_params::overlay_summary(call, info).await {
        text.push('\n');
        text.push_str(&line);
    }
}

/// Adds one note.
pub(super) fn add_note(text: &mut String, line: &str) {
    text.push_str("\nnote: ");
    text.push_str(line);
}

/// Ends that are no answer: its time ran out (`hint` says what to do then), or nobody can say
/// how it ended.
pub(super) fn ending_failure(
    info: &ExecutionInfo,
    ending: &Termination,
    hint: &str,
) -> Option<ApiError> {
    match &ending.cause {
        TerminationCause::TimedOut { .. } => {
            let message = format!(
                "the command ran out of time after {} s and was ended with its process tree; \
                 its output so far follows",
                seconds(info.duration())
            );
            Some(ApiError::new(ErrorCode::CommandTimeout, message).with_hint(hint))
        }
        TerminationCause::SpawnFailed { .. } | TerminationCause::Lost { .. } => Some(
            ApiError::new(ErrorCode::CommandExecution, ending.describe()),
        ),
        TerminationCause::Exited
        | TerminationCause::Signaled
        | TerminationCause::Stopped { .. }
        | TerminationCause::OutOfMemory => None,
    }
}

/// Why a wait was over, in one word.
pub(super) const fn wait_end_name(why: &WaitEnd) -> &'static str {
    match why {
        WaitEnd::Exit => "exit",
        WaitEnd::Pattern(_) => "pattern",
        WaitEnd::Prompt(_) => "prompt",
        WaitEnd::Ready => "ready",
        WaitEnd::NotReady(_) => "not_ready",
        WaitEnd::Output => "output",
        WaitEnd::Idle => "idle",
        WaitEnd::TimedOut => "time",
        WaitEnd::Nothing => "nothing",
    }
}
