//! `pty_read`: the screen, plain text, or raw output, now or after a condition is met.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ostler_engine::{
    ExecutionInfo, TerminalPage, TerminalPageQuery, WaitEnd, WaitFor, WaitOutcome,
};
use ostler_model::Cursor;
use ostler_render::REPLY_CHARS;
use serde_json::{Value, json};

use super::pty_run::OFFSET_LIMIT;
use super::session::{self, SESSION};
use super::session_reply::SessionReply;
use super::settle::{self, PATTERN, SettleWait, UNTIL, WAIT_MS};
use crate::reply::{ToolInterrupt, ToolReply};
use crate::tool_call::ToolCall;
use crate::tools::registry::{ToolDefinition, ToolHints, ToolResult};
use ostler_interface::error::ApiError;
use ostler_interface::params::{Arguments, Parameter, ParameterKind};

/// The default wait for a session to settle.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a call without a wait takes to detect a prompt: a little longer than the silence
/// required for that.
const PROMPT_WAIT: Duration = Duration::from_millis(250);
/// The most bytes of one raw page.
const RAW_BYTES: i64 = 18_000;
/// The most characters of a raw page as JSON.
const RAW_CHARS: usize = REPLY_CHARS - 500;

pub(super) const DEFINITION: ToolDefinition = ToolDefinition {
    name: "pty_read",
    title: "Look at a terminal",
    about: "Look at a session: its screen (default), its output as text (redraws folded), or raw \
            with control sequences: {data, next_offset, start_offset, truncated}. With until, \
            pattern or wait_ms it waits first, as pty_write does; \"prompt\" in a shell means \
            its command has ended.",
    parameters: &[
        SESSION,
        Parameter::optional(
            "view",
            ParameterKind::Choice(&["screen", "text", "raw"]),
            "",
        ),
        Parameter::optional(
            "offset",
            ParameterKind::Integer(0, OFFSET_LIMIT),
            "Of text, raw, until: only what comes after it (B of \"output A to B\"); default of \
             text, until: what you were not shown yet",
        ),
        Parameter::optional(
            "limit",
            ParameterKind::Integer(1, OFFSET_LIMIT),
            "Bytes of text, raw",
        ),
        UNTIL,
        PATTERN,
        WAIT_MS,
    ],
    hints: ToolHints::READ_ONLY,
    output: None,
    handler: |call, arguments| {
        Box::pin(session::with_session_error_code(run_tool(call, arguments)))
    },
};

async fn run_tool(call: ToolCall<'_>, mut arguments: Arguments) -> ToolResult {
    let id = arguments.required_text("session");
    let info = session::find_session(call, &id)?;
    let view = arguments.text("view");
    let view = view.as_deref().unwrap_or("screen");
    let (offset, limit) = (arguments.count("offset"), arguments.count("limit"));
    if view == "screen" && limit.is_some() {
        return Err(ApiError::value(
            "parameter 'limit' does not go with view 'screen'; allowed: view 'text' or 'raw'",
        )
        .into());
    }
    if let Some(offset) = offset.filter(|it| view == "text" && *it > info.output_end) {
        return Err(beyond_output(&info, offset).into());
    }
    let unread = offset.or_else(|| call.unread_from(&info));
    let from = unread.map(|offset| Cursor { offset, event: 0 });
    let now = info.cursor();
    let wait = SettleWait::parse(&mut arguments, from, SETTLE_TIMEOUT)?;
    let outcome = match wait.map(|wait| with_start(wait, from, now)) {
        Some(wait) => settle::wait_session(call, &id, &wait, None).await?,
        None => current_state(call, &id).await?.into(),
    };
    match view {
        "raw" => read_raw(call, &id, offset, limit).await,
        "text" => {
            let reply = SessionReply::of_outcome(call, outcome);
            let from = unread.unwrap_or(0);
            let reply = if offset.is_some() || limit.is_some() {
                reply.with_page(from, limit).await?
            } else {
                reply.with_text(from).await?
            };
            Ok(reply.into_reply(None).await)
        }
        _ => {
            let reply = SessionReply::of_outcome(call, outcome)
                .with_screen()
                .await?;
            Ok(reply.into_reply(None).await)
        }
    }
}

fn beyond_output(info: &ExecutionInfo, offset: u64) -> ApiError {
    ApiError::value(format!(
        "parameter 'offset' is {offset}, beyond the output of {}, which ends at {}; allowed: an \
         offset of an answer about this session, or none",
        info.id.short(),
        info.output_end
    ))
}

/// A client that was shown nothing yet waits for output from now on.
fn with_start(wait: SettleWait, from: Option<Cursor>, now: Cursor) -> SettleWait {
    match (&wait.until, from) {
        (settle::SettleUntil::Reason(WaitFor::OutputAfter(_)), None) => SettleWait {
            until: settle::SettleUntil::Reason(WaitFor::OutputAfter(now)),
            ..wait
        },
        _ => wait,
    }
}

/// The present state, with a prompt if one is detected.
async fn current_state(call: ToolCall<'_>, id: &str) -> Result<WaitOutcome, ToolInterrupt> {
    let waiting = call
        .engine
        .wait(call.caller, id, &WaitFor::Prompt, Some(PROMPT_WAIT));
    let mut waited = waiting
        .await
        .map_err(|error| session::session_failure(call, id, error))?;
    if waited.end == WaitEnd::TimedOut {
        waited.end = WaitEnd::Nothing;
    }
    Ok(waited)
}

/// Reads raw output.
async fn read_raw(
    call: ToolCall<'_>,
    id: &str,
    offset: Option<u64>,
    limit: Option<u64>,
) -> ToolResult {
    let most = RAW_BYTES.unsigned_abs();
    let mut limit = limit.map_or(most, |limit| limit.min(most));
    loop {
        let query = TerminalPageQuery {
            offset,
            limit: Some(limit),
        };
        let page = call.engine.read_terminal(call.caller, id, query).await;
        let page = page.map_err(|error| session::session_failure(call, id, error))?;
        let body = raw_body(id, &page);
        let chars = body.to_string().chars().count();
        // As JSON, a control character takes six characters.
        if chars <= RAW_CHARS || limit <= 1 {
            let info = session::find_session(call, id)?;
            call.mark_notified(&info);
            return Ok(ToolReply::status(&body));
        }
        limit = (limit * RAW_CHARS as u64 / chars as u64).clamp(1, limit - 1);
    }
}

fn raw_body(id: &str, page: &TerminalPage) -> Value {
    let data = match std::str::from_utf8(&page.data) {
        Ok(text) => json!(text),
        Err(_) => json!({"base64": STANDARD.encode(&page.data)}),
    };
    json!({
        "session": id,
        "data": data,
        "offset": page.offset,
        "next_offset": page.next_offset,
        "start_offset": page.start_offset,
        "end_offset": page.end_offset,
        "truncated": page.truncated,
    })
}
