//! What tools say of a command's end, and of what a wait for it came to, whatever document they
//! are of.

use ostler_engine::{Info, WaitEnd};
use ostler_model::ending::{Cause, Ending};
use ostler_model::{ErrorCode, Lifetime};

use super::command::status::seconds;
use super::walls;
use crate::error::Failure;
use crate::mcp::context::Call;
use crate::mcp::output::Printed;

/// Its exit code; `null` and the signal where one ended it.
pub(super) fn exit_code(ending: &Ending) -> String {
    match (ending.code, ending.signal) {
        (Some(code), _) => code.to_string(),
        (None, Some(signal)) => format!("null (ended by {signal})"),
        (None, None) => "null".to_owned(),
    }
}

/// What ends it while it goes on.
pub(super) fn time_limit(info: &Info) -> String {
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
pub(super) async fn notes(text: &mut String, (call, info): (Call<'_>, &Info), printed: &Printed) {
    for told in printed.notes.iter().chain(&info.state.degraded) {
        note(text, told);
    }
    for told in walls::notes(call, info) {
        note(text, &told);
    }
    if let Some(told) = walls::changes(call, info).await {
        text.push('\n');
        text.push_str(&told);
    }
}

/// Adds one note.
pub(super) fn note(text: &mut String, told: &str) {
    text.push_str("\nnote: ");
    text.push_str(told);
}

/// Ends that are no answer: its time ran out (`hint` says what to do then), or nobody can say
/// how it ended.
pub(super) fn failure(info: &Info, ending: &Ending, hint: &str) -> Option<Failure> {
    match &ending.cause {
        Cause::TimedOut { .. } => {
            let message = format!(
                "the command ran out of time after {} s and was ended with its process tree; \
                 its output so far follows",
                seconds(info.duration())
            );
            Some(Failure::new(ErrorCode::CommandTimeout, message).with_hint(hint))
        }
        Cause::SpawnFailed { .. } | Cause::Lost { .. } => {
            Some(Failure::new(ErrorCode::CommandExecution, ending.describe()))
        }
        Cause::Exited | Cause::Signaled | Cause::Stopped { .. } | Cause::OutOfMemory => None,
    }
}

/// Why a wait was over, in one word.
pub(super) const fn why(why: &WaitEnd) -> &'static str {
    match why {
        WaitEnd::Exit => "exit",
        WaitEnd::Pattern(_) => "pattern",
        WaitEnd::Prompt(_) => "prompt",
        WaitEnd::Ready => "ready",
        WaitEnd::NotReady(_) => "not_ready",
        WaitEnd::Output => "output",
        WaitEnd::Idle => "idle",
        WaitEnd::AtMost => "time",
        WaitEnd::Nothing => "nothing",
    }
}
