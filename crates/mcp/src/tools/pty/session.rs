//! Looks up sessions, and words their errors.

use std::future::Future;

use ostler_engine::{Error, ExecutionInfo};
use ostler_model::{ErrorCode, Io, Timestamp};

use crate::reply::{ToolInterrupt, ToolReply};
use crate::tool_call::ToolCall;
use crate::tools::registry::ToolResult;
use ostler_interface::error::ApiError;
use ostler_interface::params::{Parameter, ParameterKind};

/// An additional error code of the `pty_` tools, a fixed interface for existing clients.
pub(super) const NOT_FOUND: &str = "SESSION_NOT_FOUND";

pub(super) const SESSION: Parameter = Parameter::required("session", ParameterKind::Text, "");

/// The session with this id.
pub(super) fn find_session(call: ToolCall<'_>, id: &str) -> Result<ExecutionInfo, ApiError> {
    if id.is_empty() {
        return Err(ApiError::value(
            "the id of a session is empty; allowed: one of pty_start or pty_list",
        ));
    }
    let result = call.engine.info(call.caller, id);
    let info = result.map_err(|error| session_failure(call, id, error))?;
    match info.spec.io {
        Io::Pty { .. } => Ok(info),
        Io::Pipes { .. } => Err(no_terminal(call, &info)),
    }
}

/// The session with this id, which must be running; `consequence` is the clause for the error
/// otherwise.
pub(super) fn find_running(
    call: ToolCall<'_>,
    id: &str,
    consequence: &str,
) -> Result<ExecutionInfo, ApiError> {
    let info = find_session(call, id)?;
    match ending_text(&info) {
        None => Ok(info),
        Some(ending_text) => {
            call.mark_notified(&info);
            let id = info.id.short();
            let message = format!("session {id} has ended ({ending_text}); {consequence}");
            Err(ApiError::new(ErrorCode::ProcessControl, message)
                .with_hint("pty_read still shows its screen and output; pty_start opens another"))
        }
    }
}

/// How it ended, as text.
pub(super) fn ending_text(info: &ExecutionInfo) -> Option<String> {
    info.state.ending.as_ref().map(|ending| ending.describe())
}

/// Words an error of the engine about this session.
pub(in crate::tools) fn session_failure(call: ToolCall<'_>, id: &str, error: Error) -> ApiError {
    match &error {
        Error::NotFound | Error::SessionNotFound => not_found(id),
        Error::NoTerminal { .. } => match call.info(id) {
            Ok(info) => no_terminal(call, &info),
            Err(_) => not_found(id),
        },
        Error::NoShell { .. } => ApiError::value(format!(
            "session {id} is no shell with integration, which pty_run needs"
        ))
        .with_hint(
            "type into it with pty_write; a session for pty_run comes from pty_start without \
             command",
        ),
        Error::ShellBusy { .. } => engine_failure(call, id, error).with_hint(
            "pty_read shows it; answer or interrupt it with pty_write (keys [\"ctrl-c\"])",
        ),
        Error::Leased { holder, .. } => leased_failure(call, id, holder),
        Error::Argument(_)
        | Error::Program(_)
        | Error::NotAllowed(_)
        | Error::Container(_)
        | Error::UnmetIsolation(_)
        | Error::InvalidSandbox { .. }
        | Error::Denied { .. }
        | Error::ApprovalRequired { .. }
        | Error::Secret { .. }
        | Error::SecretExposed { .. }
        | Error::SecretDenied { .. }
        | Error::Workspace(_)
        | Error::Service(_)
        | Error::Context(_)
        | Error::Project(_)
        | Error::Freeze { .. }
        | Error::Quota(_)
        | Error::SpawnFailed { .. }
        | Error::Interaction(_)
        | Error::Spawn(_)
        | Error::ControlFailed(_)
        | Error::StillRunning { .. }
        | Error::TypingUncertain { .. }
        | Error::Storage { .. }
        | Error::NewerFile { .. }
        | Error::Ledger { .. }
        | Error::Output(_)
        | Error::ClearOutput(_)
        | Error::Locked { .. }
        | Error::SessionEnded
        | Error::Closing => engine_failure(call, id, error),
    }
}

/// The engine's message, with ids in their short form.
fn engine_failure(call: ToolCall<'_>, id: &str, error: Error) -> ApiError {
    let failure = ApiError::from(error);
    let Ok(info) = call.info(id) else {
        return failure;
    };
    let message = failure
        .message
        .replace(&info.id.to_string(), &info.id.short());
    ApiError { message, ..failure }
}

fn not_found(id: &str) -> ApiError {
    let message = format!("session '{id}' not found or access denied ({NOT_FOUND})");
    ApiError::new(ErrorCode::SessionNotFound, message).with_hint("pty_list shows the sessions")
}

fn no_terminal(call: ToolCall<'_>, info: &ExecutionInfo) -> ApiError {
    let id = info.id.short();
    let message = format!("process {id} has no terminal; allowed: a session of pty_start");
    let hint = if call.client_context.tools.offers("process") {
        "use process and process_control for it; pty_list shows the sessions"
    } else {
        "pty_list shows the sessions"
    };
    ApiError::value(message).with_hint(hint)
}

/// Another client holds the lease: who, and since when.
fn leased_failure(call: ToolCall<'_>, id: &str, name: &str) -> ApiError {
    let holder = call.engine.lease_holder(call.caller, id).ok().flatten();
    let since = holder.map_or_else(String::new, |holder| {
        format!(" since {}", format_seconds(holder.since))
    });
    let message = format!("{name} types in session {id}{since}; nothing was typed");
    let look = if call.client_context.tools.offers("pty_read") {
        "pty_read"
    } else {
        "process screen"
    };
    ApiError::new(ErrorCode::ProcessControl, message).with_hint(format!(
        "watch with {look} until it is handed back; do not end what a person uses"
    ))
}

/// RFC 3339, in seconds.
pub(super) fn format_seconds(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// A result whose failure also has the error code of the `pty_` tools.
pub(super) async fn with_session_error_code(
    answer: impl Future<Output = ToolResult> + Send,
) -> ToolResult {
    match answer.await {
        Err(ToolInterrupt::Failed(failure)) if failure.code == ErrorCode::SessionNotFound => {
            let mut reply = ToolReply::from(failure);
            reply
                .fields
                .insert("error_code".to_owned(), NOT_FOUND.into());
            Ok(reply)
        }
        answer => answer,
    }
}
