//! Terminals in profile `core`: start a command in one, type, show the screen. Answers are made as
//! for the tools of profile `pty`.

use std::time::Duration;

use ostler_engine::{
    ExecutionInfo, StartRequest, TerminalInput, TerminalInputResult, WaitEnd, WaitFor,
};
use ostler_journal::Pattern;
use ostler_model::{Cursor, ErrorCode, TermSize};

use super::input::InputArguments;
use super::watch::start_watch;
use crate::approval;
use crate::tool_call::ToolCall;
use crate::tools::execution::execution_reply;
use crate::tools::pty::{SessionReply, SettleUntil, SettleWait, session, settle};
use crate::tools::registry::ToolResult;
use crate::wait::WaitOptions;
use ostler_interface::error::ApiError;

/// The size of a terminal.
pub(super) const SIZE: TermSize = TermSize { cols: 80, rows: 24 };
/// How long showing a screen waits to detect a prompt.
const PROMPT_WAIT: Duration = Duration::from_millis(250);

/// What a start in a terminal is answered with.
#[derive(Debug)]
pub(super) struct TerminalLaunch {
    /// The condition that the call names.
    pub(super) until: Option<WaitFor>,
    pub(super) options: WaitOptions,
    /// The lines to watch for.
    pub(super) notify: Option<Pattern>,
    /// The most characters of the answer.
    pub(super) chars: usize,
}

/// Starts a command in a terminal; answers with its output or screen once it asks for input or is
/// quiet, or the given condition is met.
pub(super) async fn start_in_terminal(
    call: ToolCall<'_>,
    request: StartRequest,
    launch: TerminalLaunch,
) -> ToolResult {
    let start_guard = approval::begin(call, request).await?;
    let id = start_guard.id().short();
    // Until its id is published, cancelling the request ends it.
    let info = call.publish_id(start_guard);
    let wait = SettleWait {
        until: launch
            .until
            .map_or(SettleUntil::Settled, SettleUntil::Reason),
        timeout: launch.options.timeout.unwrap_or_default(),
    };
    let waited = settle::wait_session(call, &id, &wait, Some(Cursor::START)).await;
    let outcome = settle::outcome_of_start(call, waited, info)?;
    outcome.waited.info.ensure_spawned()?;
    let failure = execution_reply::ending_failure(&outcome.waited.info);
    let problem = launch
        .notify
        .and_then(|pattern| start_watch(call, &outcome.waited, pattern));
    let waited = outcome.waited.clone();
    let mut reply = match SessionReply::of_outcome(call, outcome)
        .for_core_tools()
        .in_chars(launch.chars)
        .with_changes(0)
        .await
    {
        Ok(mut reply) => {
            reply.add_isolation_notes();
            if let Some(problem) = problem {
                reply.add_note(problem);
            }
            reply.into_reply(None).await
        }
        Err(failure) => execution_reply::status_line(call, &waited)
            .with_note(&failure.message())
            .into_reply(),
    };
    reply.failure = failure;
    Ok(reply)
}

/// Types; returns the accepted and the total bytes.
pub(super) async fn type_input(
    call: ToolCall<'_>,
    id: &str,
    input: &InputArguments,
) -> Result<TerminalInputResult, ApiError> {
    let typing = TerminalInput {
        pieces: input.pieces(),
        lease: None,
    };
    let typed = call.engine.send_input(call.caller, id, typing).await;
    typed.map_err(|error| session::session_failure(call, id, error))
}

/// Types, and answers with the effect.
pub(super) async fn write_and_wait(
    call: ToolCall<'_>,
    info: &ExecutionInfo,
    input: &InputArguments,
    timeout: Duration,
) -> ToolResult {
    let id = info.id.short();
    // Output since the last answer is part of this one.
    let unread = call.unread_from(info).unwrap_or(info.output_end);
    let typed = type_input(call, &id, input).await?;
    if typed.accepted == 0 && typed.bytes > 0 {
        let message = format!(
            "it took none of {} bytes: it does not read its terminal",
            typed.bytes
        );
        let failure = ApiError::new(ErrorCode::ProcessControl, message);
        return Err(failure
            .with_hint("process screen shows it; signal INT interrupts it")
            .into());
    }
    let sent = Cursor {
        offset: typed.input.offset,
        event: 0,
    };
    let wait = SettleWait {
        until: SettleUntil::Settled,
        timeout,
    };
    let outcome = settle::wait_session(call, &id, &wait, Some(sent)).await?;
    let reply = SessionReply::of_outcome(call, outcome).for_core_tools();
    let mut reply = reply.with_changes(unread).await?;
    if typed.accepted < typed.bytes {
        let TerminalInputResult {
            bytes,
            accepted: taken,
            ..
        } = typed;
        reply.add_note(format!(
            "it took {taken} of {bytes} bytes; type the rest when it reads"
        ));
    }
    Ok(reply.into_reply(None).await)
}

/// The screen of one execution.
pub(super) async fn show_screen(call: ToolCall<'_>, ids: &[String]) -> ToolResult {
    let [id] = ids else {
        return Err(ApiError::value("action 'screen' with several 'ids'; allowed: one id").into());
    };
    if call.info(id)?.size().is_none() {
        let failure = ApiError::value(format!("process {id} has no terminal"));
        let hint = "action 'output' shows what it printed; exec with input \"tty\" gives one";
        return Err(failure.with_hint(hint).into());
    }
    let waiting = call
        .engine
        .wait(call.caller, id, &WaitFor::Prompt, Some(PROMPT_WAIT));
    let mut waited = waiting.await?;
    if waited.end == WaitEnd::TimedOut {
        waited.end = WaitEnd::Nothing;
    }
    let reply = SessionReply::new(call, waited)
        .for_core_tools()
        .with_screen()
        .await?;
    Ok(reply.into_reply(None).await)
}
