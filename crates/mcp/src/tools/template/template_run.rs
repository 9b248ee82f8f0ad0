//! `template_run`: runs a command template.

use std::time::Duration;

use ostler_engine::{ClientKind, RefusedRequest, StartRequest, WaitFor};
use ostler_interface::error::ApiError;
use ostler_interface::params::{Arguments, Parameter, ParameterKind};
use ostler_interface::templates::{find_template, template_command};
use ostler_model::ByteString;

use crate::refusal::record_refusal;
use crate::tool_call::ToolCall;
use crate::tools::core::{TIMEOUT_LIMIT_S, WAIT_MS, reply_with_watch, start_without_wait};
use crate::tools::params::isolation;
use crate::tools::params::output_range::{MAX_CHARS, OutputSelection};
use crate::tools::params::wait_for::{self, WAIT_LIMIT_MS};
use crate::tools::registry::{ToolDefinition, ToolHints, ToolResult};
use crate::wait::{self, WaitOptions};

pub(super) const DEFINITION: ToolDefinition = ToolDefinition {
    name: "template_run",
    title: "Run a command template",
    about: "Run a command template of template_list. Each value becomes one argument or a part of \
            one; no shell sees it. Answers as exec does: what has not ended after wait_ms goes on \
            under its id. Where the template requires confirmation, a person is asked first.",
    parameters: &[
        Parameter::required("id", ParameterKind::Text, "The template"),
        Parameter::optional("parameters", ParameterKind::Scalars, "Values by name"),
        Parameter::optional(
            "cwd",
            ParameterKind::Text,
            "Directory to run in; default: the workspace",
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
            "Seconds, then the command and all it started are killed; default never",
        ),
        MAX_CHARS,
        isolation::APPROVAL.with_description("The id of a question that a person has answered"),
    ],
    hints: ToolHints::EXECUTES,
    output: None,
    handler: |call, arguments| Box::pin(run_tool(call, arguments)),
};

async fn run_tool(call: ToolCall<'_>, mut arguments: Arguments) -> ToolResult {
    let directory = arguments.text("cwd").unwrap_or_default();
    let id = arguments.required_text("id");
    let refused = RefusedRequest {
        client_kind: Some(ClientKind::Core),
        cwd: Some(call.resolve_directory(&directory)),
        template: Some(id.clone()),
        ..RefusedRequest::new("tool template_run")
    };
    let requested = start_request(call, &id, &directory, &mut arguments).await;
    let mut request = requested.inspect_err(|failure| {
        record_refusal(call.engine, call.caller, refused, failure);
    })?;
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

async fn start_request(
    call: ToolCall<'_>,
    id: &str,
    directory: &str,
    arguments: &mut Arguments,
) -> Result<StartRequest, ApiError> {
    let cwd = call.resolve_directory(directory);
    if !call.access.may_write(call.caller.owner.project.as_deref()) {
        call.engine.check_directory(call.caller, cwd.as_path())?;
    }
    let files = &call.state.options().templates;
    let projects = &call.caller.projects.visible;
    let catalog = files.load(Some(cwd.as_path().to_owned()), projects).await?;
    let values = arguments.map("parameters").into_iter();
    let values = values
        .map(|(name, value)| (name, ByteString::from(value)))
        .collect();
    let made = template_command(&catalog, call.caller, call.access, id, &values)?;
    let request = call.start_request(made.command, directory);
    let mut request = request.with_template(made.record);
    request.client_kind = ClientKind::Core;
    request.options.timeout = arguments.count("timeout").map(Duration::from_secs);
    request.options.description = find_template(&catalog, id)?.template.name.clone();
    request.options.approval = arguments.text("approval");
    Ok(request)
}
