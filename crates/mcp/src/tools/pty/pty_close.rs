//! `pty_close`: end sessions, and remove them.

use std::time::Duration;

use futures_util::future::join_all;
use ostler_engine::{CleanOutcome, ExecutionInfo, StopRequest, WaitFor};
use ostler_model::signal::SignalError;
use ostler_model::{ErrorCode, Signal};
use serde_json::{Value, json};

use super::session;
use crate::reply::ToolReply;
use crate::tool_call::ToolCall;
use crate::tools::registry::{ToolDefinition, ToolHints, ToolResult};
use ostler_interface::error::ApiError;
use ostler_interface::params::{Arguments, Parameter, ParameterKind};

/// The most sessions one call takes.
const SESSIONS_LIMIT: usize = 100;
/// How long to wait for the end after a signal that need not be fatal.
const SIGNAL_WAIT: Duration = Duration::from_secs(2);

pub(super) const DEFINITION: ToolDefinition = ToolDefinition {
    name: "pty_close",
    title: "Close terminals",
    about: "End sessions with all they started; a result per id. TERM hangs up, and kills after \
            5 s; KILL at once; another signal is only sent.",
    parameters: &[
        Parameter::required("sessions", ParameterKind::Ids, ""),
        Parameter::optional("signal", ParameterKind::Text, "").with_default_text("TERM"),
        Parameter::optional("reason", ParameterKind::Text, ""),
        Parameter::optional(
            "forget",
            ParameterKind::Flag,
            "Delete ended ones, output too",
        ),
    ],
    hints: ToolHints::DESTRUCTIVE,
    output: None,
    handler: |call, arguments| {
        Box::pin(session::with_session_error_code(run_tool(call, arguments)))
    },
};

/// The action on each session.
#[derive(Debug)]
struct CloseAction {
    signal: Signal,
    reason: Option<String>,
    forget: bool,
}

async fn run_tool(call: ToolCall<'_>, mut arguments: Arguments) -> ToolResult {
    let ids = parse_ids(&mut arguments)?;
    let signal: Result<Signal, SignalError> = arguments.required_text("signal").parse();
    let wrong = |error| ApiError::value(format!("parameter 'signal': {error}"));
    let action = CloseAction {
        signal: signal.map_err(wrong)?,
        reason: arguments.text("reason"),
        forget: arguments.flag("forget"),
    };
    let results = join_all(ids.iter().map(|id| close_session(call, id, &action))).await;
    Ok(results_reply(&ids, results)?)
}

/// The ids without duplicates, in the order given.
fn parse_ids(arguments: &mut Arguments) -> Result<Vec<String>, ApiError> {
    let mut ids: Vec<String> = Vec::new();
    for id in arguments.ids("sessions") {
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    match ids.len() {
        0 => Err(ApiError::value(
            "parameter 'sessions' is empty; allowed: ids of pty_start or pty_list",
        )),
        1..=SESSIONS_LIMIT => Ok(ids),
        count => Err(ApiError::value(format!(
            "parameter 'sessions' has {count} entries; allowed: at most {SESSIONS_LIMIT}"
        ))),
    }
}

/// Ends one session; returns the result's own fields.
async fn close_session(
    call: ToolCall<'_>,
    id: &str,
    action: &CloseAction,
) -> Result<Value, ApiError> {
    let known = session::find_session(call, id)?;
    let had_ended = known.state.is_finished();
    let info = if had_ended {
        known
    } else {
        end_session(call, id, action).await?
    };
    call.mark_notified(&info);
    let mut fields = json!({
        "result": describe_result(&info, had_ended, action.signal),
        "status": info.status().session,
    });
    if let Some(ending) = &info.state.ending {
        fields["exit_code"] = json!(ending.code);
        fields["signal"] = json!(ending.signal.map(|signal| signal.name()));
    }
    if !info.survivors.is_empty() {
        fields["survivors"] = json!(info.survivors);
    }
    if action.forget {
        let outcome = clean_session(call, &info).await?;
        fields["forgotten"] = json!(outcome != CleanOutcome::Running);
        if outcome == CleanOutcome::Discarded {
            fields["note"] = json!("changes nobody committed went with it");
        }
    }
    Ok(fields)
}

async fn end_session(
    call: ToolCall<'_>,
    id: &str,
    action: &CloseAction,
) -> Result<ExecutionInfo, ApiError> {
    let (engine, caller) = (call.engine, call.caller);
    let to_failure = |error| session::session_failure(call, id, error);
    if action.signal == Signal::TERM || action.signal == Signal::KILL {
        let request = StopRequest {
            force: action.signal == Signal::KILL,
            grace: None,
            reason: action.reason.clone(),
        };
        return engine.stop(caller, id, request).await.map_err(to_failure);
    }
    let sent = engine.signal(caller, id, action.signal).await;
    sent.map_err(to_failure)?;
    let waited = engine
        .wait(caller, id, &WaitFor::Exit, Some(SIGNAL_WAIT))
        .await;
    Ok(waited.map_err(to_failure)?.info)
}

fn describe_result(info: &ExecutionInfo, had_ended: bool, signal: Signal) -> String {
    match (session::ending_text(info), had_ended) {
        (Some(how), false) => how,
        (Some(how), true) => format!("it had ended before: {how}"),
        (None, _) => format!("{signal} sent; it still runs"),
    }
}

/// Removes one session, unless it runs.
async fn clean_session(call: ToolCall<'_>, info: &ExecutionInfo) -> Result<CleanOutcome, ApiError> {
    if !info.state.is_finished() {
        return Ok(CleanOutcome::Running);
    }
    let id = info.id.short();
    let outcomes = call.engine.clean(call.caller, &[id]).await?;
    match outcomes.into_iter().next() {
        Some((_, CleanOutcome::Failed(reason))) => {
            Err(ApiError::new(ErrorCode::ProcessClean, reason))
        }
        Some((_, outcome)) => Ok(outcome),
        None => Ok(CleanOutcome::NotFound),
    }
}

/// A result per id; an error only when every id failed.
fn results_reply(
    ids: &[String],
    results: Vec<Result<Value, ApiError>>,
) -> Result<ToolReply, ApiError> {
    let mut failures: Vec<ApiError> = Vec::new();
    let mut lines = Vec::with_capacity(ids.len());
    for (id, result) in ids.iter().zip(results) {
        let mut line = result.unwrap_or_else(|failure| {
            let mut fields = json!({
                "result": format!("failed: {}", failure.message()),
                "error": failure.code,
            });
            if failure.code == ErrorCode::SessionNotFound {
                fields["error_code"] = session::NOT_FOUND.into();
            }
            failures.push(failure);
            fields
        });
        line["session"] = json!(id);
        lines.push(line);
    }
    if failures.len() < ids.len() {
        return Ok(ToolReply::status(&json!({"results": lines})));
    }
    let messages: Vec<String> = failures.iter().map(|it| it.message.clone()).collect();
    let message = messages.join("; ");
    let first = failures.into_iter().next();
    let first = first.unwrap_or_else(|| ApiError::value("no session was named"));
    Err(ApiError { message, ..first })
}
