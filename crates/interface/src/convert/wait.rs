//! Converts the results of waits, and prompts.

use ostler_api::{CodeName, PromptBody, ShellRunOutcomeBody, WaitEndKind, WaitErrorBody};
use ostler_engine::{Prompt, ShellEnd, WaitEnd, WaitOutcome};

/// Why a wait was over.
pub fn wait_end_kind(end: &WaitEnd) -> WaitEndKind {
    match end {
        WaitEnd::Exit => WaitEndKind::Exit,
        WaitEnd::Pattern(_) => WaitEndKind::Pattern,
        WaitEnd::Ready => WaitEndKind::Ready,
        WaitEnd::NotReady(_) => WaitEndKind::NotReady,
        WaitEnd::Output => WaitEndKind::Output,
        WaitEnd::Idle => WaitEndKind::Idle,
        WaitEnd::Prompt(_) => WaitEndKind::Prompt,
        WaitEnd::TimedOut => WaitEndKind::TimedOut,
        WaitEnd::Nothing => WaitEndKind::Nothing,
    }
}

/// The error that a wait ended with, if one did.
pub fn wait_error(outcome: &WaitOutcome) -> Option<WaitErrorBody> {
    let code = outcome.error_code()?;
    let id = outcome.info.id.short();
    let message = match outcome.info.error_message() {
        Some(reason) => format!("{id}: {reason}"),
        None => format!("{id} is still running"),
    };
    Some(WaitErrorBody {
        code: CodeName(code),
        message,
        retryable: code.info().retryable,
    })
}

/// A command's question.
pub fn prompt_body(prompt: Prompt) -> PromptBody {
    PromptBody {
        text: prompt.text,
        secret: prompt.secret,
        kind: prompt.kind,
        options: prompt.options,
        default: prompt.default,
        pid: prompt.pid,
    }
}

/// How a wait for a command in a shell was over.
pub fn shell_run_outcome(end: ShellEnd) -> ShellRunOutcomeBody {
    match end {
        ShellEnd::Finished { status, cwd } => ShellRunOutcomeBody::Finished { status, cwd },
        ShellEnd::Prompt(prompt) => ShellRunOutcomeBody::Prompt {
            prompt: prompt_body(prompt),
        },
        ShellEnd::Incomplete => ShellRunOutcomeBody::Incomplete,
        ShellEnd::NoMarker => ShellRunOutcomeBody::Silent,
        ShellEnd::ShellEnded => ShellRunOutcomeBody::ShellEnded,
        ShellEnd::TimedOut => ShellRunOutcomeBody::TimedOut,
    }
}
