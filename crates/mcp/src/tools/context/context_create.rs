//! `context_create`: the context of a project.

use std::time::Duration;

use ostler_engine::ContextRequest;
use ostler_interface::convert::context_body;
use ostler_interface::params::{Arguments, Parameter, ParameterKind};
use ostler_model::StartOptions;
use serde_json::json;

use crate::reply::ToolReply;
use crate::tool_call::ToolCall;
use crate::tools::core::TIMEOUT_LIMIT_S;
use crate::tools::registry::{ToolDefinition, ToolHints, ToolResult};

pub(super) const DEFINITION: ToolDefinition = ToolDefinition {
    name: "context_create",
    title: "Create a context",
    about: "The context of a project, where context_run runs commands: one directory, variables, \
            secrets and limits for all of them. Returns the one there is (new: false) or creates \
            one; one with other fields than given is refused. It ends when it was not used for \
            idle_timeout, with the directory that was created for it.",
    parameters: &[
        Parameter::required(
            "project",
            ParameterKind::Text,
            "Any name, or the directory it is",
        ),
        Parameter::optional(
            "task",
            ParameterKind::Text,
            "For the variable CLAUDE_TASK_ID",
        ),
        Parameter::optional(
            "cwd",
            ParameterKind::Text,
            "The directory of its commands; default: the project where that is a directory, else \
             a new one",
        ),
        Parameter::optional("env", ParameterKind::Map, "Variables of its commands"),
        Parameter::optional(
            "secrets",
            ParameterKind::List,
            "Names of secrets that its commands get as variables",
        ),
        Parameter::optional(
            "timeout",
            ParameterKind::Integer(1, TIMEOUT_LIMIT_S),
            "Seconds, the time limit of each command; default 3600",
        ),
        Parameter::optional(
            "idle_timeout",
            ParameterKind::Integer(1, TIMEOUT_LIMIT_S),
            "Seconds without use until it ends; default 1800",
        ),
    ],
    hints: ToolHints {
        read_only: false,
        destructive: false,
        idempotent: true,
    },
    output: None,
    handler: |call, arguments| Box::pin(run_tool(call, arguments)),
};

async fn run_tool(call: ToolCall<'_>, mut arguments: Arguments) -> ToolResult {
    let variables = arguments.map("env").into_iter();
    let variables = variables.map(|(name, value)| (name.into(), value.into()));
    let directory = arguments.text("cwd");
    let request = ContextRequest {
        project: arguments.required_text("project"),
        task: arguments.text("task"),
        directory: directory.map(|directory| call.resolve_directory(&directory)),
        idle_timeout: arguments.count("idle_timeout").map(Duration::from_secs),
        options: StartOptions {
            set_env: variables.collect(),
            secrets: arguments.list("secrets"),
            timeout: arguments.count("timeout").map(Duration::from_secs),
            ..StartOptions::default()
        },
    };
    let (context, is_new) = call.engine.open_context(call.caller, request).await?;
    let mut body = json!(context_body(&context));
    body["new"] = is_new.into();
    Ok(ToolReply::status(&body))
}
