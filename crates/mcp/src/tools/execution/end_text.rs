//! Texts about a command's termination and the end of a wait, shared by the tool families.

use ostler_engine::{ExecutionInfo, WaitEnd};
use ostler_model::duration;
use ostler_model::termination::{Termination, TerminationCause, TimeoutKind};
use ostler_model::{ErrorCode, Lifetime};

use super::isolation_notes::{isolation_notes, overlay_summary};
use crate::output::OutputBlocks;
use crate::tool_call::ToolCall;
use ostler_interface::error::ApiError;

/// Its exit code; `null` and the signal where a signal ended it.
pub(in crate::tools) fn exit_code_text(ending: &Termination) -> String {
    match (ending.code, ending.signal) {
        (Some(code), _) => code.to_string(),
        (None, Some(signal)) => format!("null (ended by {signal})"),
        (None, None) => "null".to_owned(),
    }
}

/// The time limit of a command that continues.
pub(in crate::tools) fn time_limit_text(info: &ExecutionInfo) -> String {
    match &info.spec.lifetime {
        Lifetime::Finite {
            timeout: Some(timeout),
            ..
        } => format!("its timeout of {} still holds", duration::seconds(*timeout)),
        Lifetime::Finite { timeout: None, .. } | Lifetime::Service { .. } => {
            "it has no timeout".to_owned()
        }
    }
}

/// Appends notes about the output, the journal and the isolation.
pub(in crate::tools) async fn add_notes(
    text: &mut String,
    call: ToolCall<'_>,
    info: &ExecutionInfo,
    output: &OutputBlocks,
) {
    let cut_line = output.cut_line_note(call, info);
    let output_notes = output.notes.iter().chain(&cut_line);
    for line in output_notes.chain(info.state.degradations()) {
        add_note(text, line);
    }
    for line in isolation_notes(call, info) {
        add_note(text, &line);
    }
    if let Some(line) = overlay_summary(call, info).await {
        text.push('\n');
        text.push_str(&line);
    }
}

/// Adds one note.
pub(in crate::tools) fn add_note(text: &mut String, line: &str) {
    text.push_str("\nnote: ");
    text.push_str(line);
}

/// Terminations that are errors: a timeout (with `hint`), or an unknown end.
pub(in crate::tools) fn ending_failure(
    info: &ExecutionInfo,
    ending: &Termination,
    hint: &str,
) -> Option<ApiError> {
    match &ending.cause {
        TerminationCause::TimedOut { clock } => Some(timeout_failure(info, *clock, hint)),
        TerminationCause::SpawnFailed { .. } | TerminationCause::Lost { .. } => Some(
            ApiError::new(ErrorCode::CommandExecution, ending.describe()),
        ),
        TerminationCause::Exited
        | TerminationCause::Signaled
        | TerminationCause::Stopped { .. }
        | TerminationCause::OutOfMemory => None,
    }
}

/// That a timeout ended it: which one, and when it ended, which the grace period may delay.
pub(in crate::tools) fn timeout_failure(
    info: &ExecutionInfo,
    clock: TimeoutKind,
    hint: &str,
) -> ApiError {
    let (timeout, idle) = match &info.spec.lifetime {
        Lifetime::Finite { timeout, idle } => (*timeout, *idle),
        Lifetime::Service { .. } => (None, None),
    };
    let (limit, what) = match clock {
        TimeoutKind::Wall => (timeout, "timeout"),
        TimeoutKind::Idle => (idle, "timeout without output"),
    };
    let limit = limit.map(|limit| format!(" of {}", duration::seconds(limit)));
    let message = format!(
        "the command reached its {what}{} and was ended with its process tree, after {}; its \
         output so far follows",
        limit.unwrap_or_default(),
        duration::seconds(info.duration())
    );
    ApiError::new(ErrorCode::CommandTimeout, message).with_hint(hint)
}

/// The end of a wait as one word.
pub(in crate::tools) const fn wait_end_name(why: &WaitEnd) -> &'static str {
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
