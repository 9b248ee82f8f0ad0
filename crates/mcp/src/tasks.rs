//! The tasks extension (SEP-2663), backed by executions: a task's id is its execution's id, so
//! tasks survive the daemon and end when their command does. The result of a task is that of its
//! tool, called once more on the ended execution.

use std::time::Duration;

use ostler_engine::{Engine, Error, ExecutionInfo, RefusedRequest, WaitEnd, WaitFor};
use ostler_model::{Caller, Timestamp};
use rmcp::ErrorData;
use rmcp::model::{
    CancelTaskParams, CreateTaskResult, DetailedTask, GetTaskParams, GetTaskResult, JsonObject,
    Task, TaskPayload, TaskStatus, UpdateTaskParams,
};
use serde_json::{Value, json};

use super::call_context::{CallContext, RequestScope};
use super::client::ConnectedClient;
use super::form::{FormReply, form_requests};
use super::last_line::last_line;
use super::refusal::record_refusal;
use super::reply::{BecameTask, ToolInterrupt, ToolReply};
use super::state::McpState;
use super::task_origins::TaskOrigin;
use super::tool_call::ToolCall;
use super::tools::{self, ToolDefinition};
use super::{elicit, to_rmcp};
use ostler_interface::error::{ApiError, object};
use ostler_interface::params::ParameterKind;

/// How long one check of a task waits for a prompt, in milliseconds: longer than the silence that
/// indicates one.
const PROMPT_WAIT_MS: u64 = 500;
/// How long a cancellation waits for the end, in milliseconds; it takes effect in any case.
const CANCEL_WAIT_MS: u64 = 1_000;
/// Suggested poll intervals by the task's age: (younger than, in seconds; interval, milliseconds).
const POLL_MS: [(u64, u64); 2] = [(10, 1_000), (60, 2_000)];
/// The suggested poll interval of older tasks, in milliseconds.
const POLL_LATER_MS: u64 = 5_000;

/// The answer to a call that becomes a task.
pub(super) async fn create_task(
    call: ToolCall<'_>,
    tool: &'static ToolDefinition,
    arguments: JsonObject,
    became_task: BecameTask,
) -> CreateTaskResult {
    let BecameTask {
        info,
        asks_person: asks,
    } = became_task;
    let origin = TaskOrigin::new(tool.name, arguments, asks);
    call.state.task_origins().remember(info.id, origin);
    CreateTaskResult::new(to_task(call.engine, call.caller, &info).await)
}

pub(super) async fn get_task(
    mcp_state: &McpState,
    client: &ConnectedClient,
    request: GetTaskParams,
    scope: RequestScope<'_>,
) -> Result<GetTaskResult, ErrorData> {
    let found = mcp_state.engine().info(&client.caller, &request.task_id);
    let info = found.map_err(|error| unknown_task(&request.task_id, &error))?;
    let call_context = CallContext::for_task_result(scope, info.id);
    let call = ToolCall {
        engine: mcp_state.engine(),
        caller: &client.caller,
        access: &client.access,
        client_context: &client.context,
        state: mcp_state,
        context: &call_context,
    };
    let origin = mcp_state.task_origins().get(info.id);
    let info = match &origin {
        Some(origin)
            if origin.asks_person
                && client.access.may_write(info.owner.project.as_deref())
                && !info.state.is_finished() =>
        {
            check_prompt(call, info).await
        }
        Some(_) | None => info,
    };
    let payload = task_payload(call, &info, origin).await;
    if info.state.is_finished() {
        call.mark_notified(&info);
    }
    let mut task = to_task(call.engine, call.caller, &info).await;
    task.status = payload.status();
    Ok(GetTaskResult::new(DetailedTask::new(task, payload)))
}

pub(super) async fn update_task(
    mcp_state: &McpState,
    client: &ConnectedClient,
    request: UpdateTaskParams,
) -> Result<(), ErrorData> {
    // Whom the task is unknown to is told that, whatever else the scopes permit.
    let found = mcp_state.engine().info(&client.caller, &request.task_id);
    let info = found.map_err(|error| unknown_task(&request.task_id, &error))?;
    let caller = writer(mcp_state, client, "an answer to a task")?;
    let found = mcp_state.engine().info(&caller, &request.task_id);
    found.map_err(|error| unknown_task(&request.task_id, &error))?;
    for (key, value) in request.input_responses {
        // A question that is not open for this task any more needs no answer (SEP-2663).
        let open = mcp_state.engine().interaction(&caller, &key);
        let Some(interaction) = open
            .ok()
            .filter(|open| open.is_open() && open.question.execution == Some(info.id))
        else {
            continue;
        };
        let id = interaction.id.to_string();
        let result = match FormReply::parse(value) {
            FormReply::Value(value) => mcp_state
                .engine()
                .answer_interaction(&caller, &id, value)
                .await
                .map(drop),
            refusal @ (FormReply::Declined | FormReply::Dismissed) => {
                let reason = if refusal == FormReply::Declined {
                    elicit::DECLINED
                } else {
                    elicit::DISMISSED
                };
                let reason = Some(reason.to_owned());
                let cancelled = mcp_state
                    .engine()
                    .cancel_interaction(&caller, &id, reason)
                    .await;
                cancelled.map(drop)
            }
            FormReply::Invalid => {
                let message = format!("the response to '{key}' is no filled-in form");
                return Err(ErrorData::invalid_params(message, None));
            }
        };
        result.map_err(|error| ErrorData::invalid_params(error.to_string(), None))?;
    }
    Ok(())
}

pub(super) async fn cancel_task(
    mcp_state: &McpState,
    client: &ConnectedClient,
    request: CancelTaskParams,
) -> Result<(), ErrorData> {
    let caller = writer(mcp_state, client, "the end of a task")?;
    let cancelled = mcp_state.engine().cancel(&caller, &request.task_id);
    let wait = Duration::from_millis(CANCEL_WAIT_MS);
    match tokio::time::timeout(wait, cancelled).await {
        // Still running: the task reports its end.
        Err(_) | Ok(Ok(_) | Err(Error::StillRunning { .. })) => Ok(()),
        Ok(Err(error)) => Err(unknown_task(&request.task_id, &error)),
    }
}

/// The caller of what changes something; `what` names it. A refusal is recorded.
fn writer(mcp_state: &McpState, client: &ConnectedClient, what: &str) -> Result<Caller, ErrorData> {
    let permitted = client.access.check_write(what).inspect_err(|error| {
        let refused = RefusedRequest::new(what);
        record_refusal(mcp_state.engine(), &client.caller, refused, error);
    });
    permitted.map_err(|error| ErrorData::invalid_request(error.message, None))?;
    Ok(client.access.writer(client.caller.clone()))
}

/// Unknown and foreign tasks get the same error.
fn unknown_task(id: &str, error: &Error) -> ErrorData {
    ErrorData::invalid_params(format!("unknown task '{id}': {error}"), None)
}

/// The task in every answer.
async fn to_task(engine: &Engine, caller: &Caller, info: &ExecutionInfo) -> Task {
    let now = Timestamp::now();
    let created = info.state.created_at.unwrap_or(now);
    let updated = info.state.ended_at.unwrap_or(now);
    let status = if info.state.is_finished() {
        TaskStatus::Completed
    } else {
        TaskStatus::Working
    };
    let id = info.id.short();
    let mut task = Task::new(id, status, created.to_string(), updated.to_string());
    task.status_message = match info.error_message() {
        Some(message) => Some(message),
        None => last_line(engine, caller, info).await,
    };
    task.poll_interval_ms = Some(poll_interval(info.duration()));
    task.ttl_ms = ttl_ms(info);
    task
}

/// How long after its creation the task is removed; none before its end, or where it is kept for
/// good.
fn ttl_ms(info: &ExecutionInfo) -> Option<u64> {
    let (ended, created) = (info.state.ended_at?, info.state.created_at?);
    let retention = i64::try_from(info.spec.retention?.as_millis()).ok()?;
    let lifetime = ended
        .as_millisecond()
        .checked_sub(created.as_millisecond())?;
    u64::try_from(lifetime.checked_add(retention)?).ok()
}

fn poll_interval(age: Duration) -> u64 {
    let entry = POLL_MS.iter().find(|(below, _)| age.as_secs() < *below);
    entry.map_or(POLL_LATER_MS, |(_, millis)| *millis)
}

/// Checks whether the command waits for an answer, and opens a question.
async fn check_prompt(call: ToolCall<'_>, info: ExecutionInfo) -> ExecutionInfo {
    let (id, timeout) = (info.id.short(), Duration::from_millis(PROMPT_WAIT_MS));
    let waited = call
        .engine
        .wait(call.caller, &id, &WaitFor::Prompt, Some(timeout))
        .await;
    let Ok(waited) = waited else {
        return info;
    };
    if let WaitEnd::Prompt(prompt) = &waited.end {
        // Too many are open: then there is no question, and the task keeps its status.
        let _question = elicit::ensure_question(call, info.id, prompt).is_ok();
    }
    waited.info
}

async fn task_payload(
    call: ToolCall<'_>,
    info: &ExecutionInfo,
    origin: Option<TaskOrigin>,
) -> TaskPayload {
    match info.status().task {
        "cancelled" => TaskPayload::Cancelled,
        "completed" => TaskPayload::Completed {
            result: task_result(call, info, origin).await,
        },
        "failed" => TaskPayload::Failed {
            error: lost_error(info),
        },
        _ => open_form(call, info).map_or(TaskPayload::Working, |input_requests| {
            TaskPayload::InputRequired { input_requests }
        }),
    }
}

/// The command's question to the person, where the client supports it.
fn open_form(call: ToolCall<'_>, info: &ExecutionInfo) -> Option<rmcp::model::InputRequests> {
    let interaction = elicit::open_question(call, info.id)?;
    let command = info.spec.command.display();
    form_requests(&interaction, &command).filter(|_| call.context.supports_forms())
}

/// The result of the tool, as if the call had waited.
async fn task_result(
    call: ToolCall<'_>,
    info: &ExecutionInfo,
    origin: Option<TaskOrigin>,
) -> JsonObject {
    let tool = origin.as_ref().and_then(|it| tools::tool_named(it.tool));
    let tool = tool.unwrap_or_else(|| tool_of(info));
    let arguments = origin.and_then(|origin| origin.arguments);
    let arguments = arguments.unwrap_or_else(|| default_arguments(tool, info));
    let reply = match tools::call_tool(tool, call, arguments).await {
        Ok(reply) => reply,
        Err(ToolInterrupt::Failed(failure)) => ToolReply::from(failure),
        Err(ToolInterrupt::BecameTask(_) | ToolInterrupt::ElicitNeeded(_)) => {
            ToolReply::from(ApiError::new(
                ostler_model::ErrorCode::Internal,
                "the task has no result yet",
            ))
        }
    };
    let result = to_rmcp::to_call_result(reply, None, call.state.options().structured);
    object(serde_json::to_value(result).unwrap_or_default())
}

/// The error of a task whose command never ran, or whose end is unknown.
fn lost_error(info: &ExecutionInfo) -> JsonObject {
    let code = ostler_model::ErrorCode::CommandExecution.info();
    let message = info.error_message().unwrap_or_default();
    object(json!({"code": code.rpc, "message": message, "data": {"code": code.name}}))
}

/// The tool for an execution that an earlier daemon started: that of its client kind.
fn tool_of(info: &ExecutionInfo) -> &'static ToolDefinition {
    let name = match info.spec.face.as_deref() {
        Some("shell") => "execute_shell",
        Some("command") | None => "command_execute",
        Some(_) => "exec",
    };
    tools::tool_named(name)
        .or_else(|| tools::tool_named("command_execute"))
        .expect("command_execute is a tool")
}

/// Arguments that start the command of `info` with defaults for everything else: those of the call
/// are lost, and the tool requires some.
fn default_arguments(tool: &ToolDefinition, info: &ExecutionInfo) -> JsonObject {
    let mut arguments = JsonObject::new();
    for parameter in tool.parameters {
        let value: Value = match (parameter.name, parameter.kind) {
            ("command", ParameterKind::Text) => info.spec.command.display().into(),
            ("command", ParameterKind::List | ParameterKind::Command) => {
                vec![info.spec.command.display()].into()
            }
            ("directory", ParameterKind::Text) => info.spec.cwd.to_string().into(),
            _ => continue,
        };
        arguments.insert(parameter.name.to_owned(), value);
    }
    arguments
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_tasks_have_a_longer_poll_interval() {
        let after = |seconds| poll_interval(Duration::from_secs(seconds));
        assert_eq!(
            [0, 9, 10, 59, 60, 86_400].map(after),
            [1_000, 1_000, 2_000, 2_000, 5_000, 5_000]
        );
    }
}
