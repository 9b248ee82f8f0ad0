//! `context_run`: runs a command in a context.

use std::time::Duration;

use ostler_engine::{ClientKind, StartRequest, WaitFor};
use ostler_interface::error::ApiError;
use ostler_interface::params::{Arguments, Parameter, ParameterKind};

use crate::tool_call::ToolCall;
use crate::tools::core::{TIMEOUT_LIMIT_S, WAIT_MS, reply_with_watch, start_without_wait};
use crate::tools::params::output_range::{MAX_CHARS, OutputSelection};
use crate::tools::params::wait_for::{self, WAIT_LIMIT_MS};
use crate::tools::params::{COMMAND, choose_shell, isolation, parse_command};
use crate::tools::registry::{ToolDefinition, ToolHints, ToolResult};
use crate::wait::{self, WaitOptions};

pub(super) const DEFINITION: ToolDefinition = ToolDefinition {
    name: "context_run",
    title: "Run a command in a context",
    about: "Run a command in a context of context_create, in its directory, with its variables, \
            secrets and limits. Answers as exec does: what has not ended after wait_ms goes on \
            under its id. Files stay for the next command; cd and export do not.",
    parameters: &[
        Parameter::required("id", ParameterKind::Text, "The context"),
        COMMAND,
        Parameter::optional(
            "cwd",
            ParameterKind::Text,
            "A directory in that of the context, absolute or relative to it",
        ),
        Parameter::optional(
            "wait_ms",
            ParameterKind::Integer(0, WAIT_LIMIT_MS),
            "Longest wait for the answer (45 s a call); never ends the command",
        )
        .with_default(WAIT_MS),
        Parameter::optional(
            "timeout",
            ParameterKind::Integer(1, TIMEOUT_LIMIT_S),
            "Seconds, then the command and all it started are killed; default: the context's",
        ),
        MAX_CHARS,
        isolation::APPROVAL.with_description("The id of a question that a person has answered"),
    ],
    hints: ToolHints::EXECUTES,
    output: None,
    handler: |call, arguments| Box::pin(run_tool(call, arguments)),
};

async fn run_tool(call: ToolCall<'_>, mut arguments: Arguments) -> ToolResult {
    let mut request = start_request(call, &mut arguments)?;
    let selection = OutputSelection::with_size(&arguments);
    let options = WaitOptions {
        timeout: wait_for::parse_wait_ms(&arguments),
        may_be_task: !arguments.is_given("wait_ms"),
        ..WaitOptions::default()
    };
    request.options.queue_timeout = options.timeout;
    let waited = if options.timeout == Some(Duration::ZERO) {
        start_without_wait(call, request).await?
    } else {
        wait::run_until(call, request, &WaitFor::Exit, options).await?
    };
    Ok(reply_with_watch(call, &waited, None, &selection).await)
}

fn start_request(call: ToolCall<'_>, arguments: &mut Arguments) -> Result<StartRequest, ApiError> {
    let id = arguments.required_text("id");
    let context = call.engine.context(call.caller, &id)?;
    let command = parse_command(arguments, None)?;
    let below = arguments.text("cwd").unwrap_or_default();
    let mut request = call.start_request(command, "");
    request.cwd = match below.as_str() {
        "" => context.directory,
        below => context.directory.as_path().join(below).into(),
    };
    request.context = Some(context.id);
    request.client_kind = ClientKind::Core;
    request.options.timeout = arguments.count("timeout").map(Duration::from_secs);
    request.options.approval = arguments.text("approval");
    choose_shell(call, &mut request);
    Ok(request)
}
