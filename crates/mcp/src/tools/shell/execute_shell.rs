//! `execute_shell`: run a script, synchronously or in the background.

use ostler_engine::StartRequest;
use serde_json::json;

use super::{script, sync_reply};
use crate::approval;
use crate::reply::ToolReply;
use crate::tool_call::ToolCall;
use crate::tools::execution::fields::{isolation_body, summary_text};
use crate::tools::execution::isolation_notes;
use crate::tools::params::isolation;
use crate::tools::registry::{ToolDefinition, ToolHints, ToolResult};
use crate::tools::service::{
    ServiceReason, detect_service, launch_and_wait, start_failure_reply, was_one_shot,
};
use crate::wait::{self, WaitOptions};
use ostler_interface::error::object;
use ostler_interface::params::{Arguments, Parameter, ParameterKind};

/// The longest timeout, in seconds: thirty days.
const TIMEOUT_LIMIT_S: i64 = 30 * 24 * 60 * 60;
/// The default timeout of `sync`, in seconds.
const TIMEOUT_S: i64 = 30;

/// The setting that runs a recognised service as a plain command.
const OPT_OUT: &str = "OSTLER_SERVICE=off before it";

pub(super) const DEFINITION: ToolDefinition = ToolDefinition {
    name: "execute_shell",
    title: "Execute Shell Command",
    about: "Execute a shell command with POSIX sh; scripts up to 128 KiB.\n\n\
            MODES:\n\
            - 'sync' (default): wait for completion, return stdout/stderr\n\
            - 'async'/'background': run in background, return process_id immediately\n\n\
            For async mode, use 'poll_process' to check status and view output.\n\n\
            Note: bash-specific commands like 'source' are not available - use '.' instead.",
    parameters: &[
        Parameter::required(
            "command",
            ParameterKind::Text,
            "Shell command to execute (POSIX sh compatible), e.g. ls -la",
        ),
        Parameter::optional(
            "timeout",
            ParameterKind::Integer(1, TIMEOUT_LIMIT_S),
            "Timeout in seconds, sync mode only; ends the whole process tree",
        )
        .with_default(TIMEOUT_S),
        Parameter::optional(
            "run_mode",
            ParameterKind::Choice(&["sync", "async", "background"]),
            "Execution mode: 'sync' (wait for completion), 'async'/'background' (return \
             immediately)",
        )
        .with_default_text("sync"),
        Parameter::optional(
            "isolation",
            isolation::LEVELS,
            "Isolation level: 'basic' (clean environment, whole-tree kill), 'medium' (default; \
             and resource limits), 'high' (sandboxing; refused where it is not available), \
             'container' (in the configured image; likewise)",
        ),
    ],
    hints: ToolHints::EXECUTES,
    output: None,
    handler: |call, arguments| Box::pin(run_tool(call, arguments)),
};

async fn run_tool(call: ToolCall<'_>, mut arguments: Arguments) -> ToolResult {
    match arguments.required_text("run_mode").as_str() {
        "sync" => Box::pin(run_sync(call, arguments)).await,
        _ => Box::pin(run_in_background(call, arguments)).await,
    }
}

async fn run_sync(call: ToolCall<'_>, mut arguments: Arguments) -> ToolResult {
    let mut request = script::start_request(call, &mut arguments)?;
    let limit = script::parse_timeout(&arguments);
    // The default limit does not apply to services.
    request.options.timeout = limit.filter(|_| arguments.is_given("timeout"));
    if let Some(way) = detect_service(call, &request, OPT_OUT) {
        return Box::pin(run_as_service(call, request, &way)).await;
    }
    request.options.timeout = limit;
    request.options.queue_timeout = limit;
    let waited = wait::run(call, request, WaitOptions::until_exit()).await?;
    sync_reply::sync_reply(call, &waited.info).await
}

/// Answers when the service runs; a command that ended successfully was no service.
async fn run_as_service(
    call: ToolCall<'_>,
    request: StartRequest,
    reason: &ServiceReason,
) -> ToolResult {
    let launch_outcome =
        match launch_and_wait(call, reason.request(request), WaitOptions::default()).await {
            Ok(launched) => launched,
            Err(interrupted) => return start_failure_reply(interrupted),
        };
    let info = &launch_outcome.waited.info;
    if was_one_shot(call, &launch_outcome.waited) {
        return sync_reply::sync_reply(call, info).await;
    }
    let fields = object(sync_reply::process_fields(info));
    Ok(reason.reply(call, launch_outcome, fields).await)
}

/// Answers as soon as the shell runs.
async fn run_in_background(call: ToolCall<'_>, mut arguments: Arguments) -> ToolResult {
    let timeout_given = arguments.given_names().any(|name| name == "timeout");
    let request = script::start_request(call, &mut arguments)?;
    let way = detect_service(call, &request, OPT_OUT);
    let info = match &way {
        Some(way) => {
            match launch_and_wait(call, way.request(request), WaitOptions::no_wait()).await {
                Ok(launched) => launched.waited.info,
                Err(interrupted) => return start_failure_reply(interrupted),
            }
        }
        None => call.publish_id(approval::begin(call, request).await?),
    };
    let id = info.id.short();
    let (status, command) = (
        info.status().shell,
        summary_text(&info.spec.command.display()),
    );
    let mut text = format!(
        "Process started in background.\n\
         Process ID: {id}\n\
         Status: {status}\n\
         Command: {command}\n\
         \n\
         Use 'poll_process' to check status and view output:\n\
         poll_process(process_id: \"{id}\", tail: {{src: \"stdout\", n: 20}})"
    );
    if timeout_given {
        text.push_str(
            "\nnote: timeout holds in sync mode only; this one runs until it ends or \
             kill_process ends it",
        );
    }
    if let Some(note) = way.and_then(|way| way.note()) {
        text.push('\n');
        text.push_str(&note);
    }
    for note in isolation_notes(call, &info) {
        text.push_str("\nnote: ");
        text.push_str(&note);
    }
    let fields = json!({
        "process_id": id,
        "status": status,
        "command": command,
        "pid": info.state.shown_pid(),
        "started_at": info.state.started_at,
        "isolation": isolation_body(&info.spec),
    });
    Ok(ToolReply::text(vec![text], fields))
}
