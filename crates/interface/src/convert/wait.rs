//! Converts the results of waits, and prompts.

use ostler_api::{PromptBody, ShellRunOutcomeBody, WaitEndKind};
use ostler_engine::{Prompt, ShellEnd, WaitEnd};

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
