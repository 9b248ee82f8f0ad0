//! `tools/call`: from the request to a tool and back, whatever kind of response results.

use std::borrow::Cow;
use std::panic::AssertUnwindSafe;

use futures_util::FutureExt as _;
use ostler_engine::StartGuard;
use ostler_model::ErrorCode;
use rmcp::model::{CallToolRequestParams, CallToolResponse, JsonObject};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde_json::Value;
use tokio_util::task::TaskTracker;

use super::call_context::CallContext;
use super::context::{ConnectedClient, ToolCall};
use super::interrupted::{self, InterruptCause, RepeatEffect};
use super::pending_deliveries::PendingDeliveries;
use super::reply::{ToolInterrupt, ToolReply};
use super::state::McpState;
use super::stdio::RequestAttempt;
use super::tools::ToolDefinition;
use super::{elicit, tasks, to_rmcp, tools};
use crate::error::ApiError;

/// The caller of a request, and how its answer is delivered.
#[derive(Debug, Clone, Copy)]
pub(super) struct ToolCallRequest<'a> {
    pub(super) state: &'a McpState,
    pub(super) client: &'a ConnectedClient,
    /// Set on a stream: ids in answers are published when the answer is sent.
    pub(super) pending: Option<&'a PendingDeliveries>,
    pub(super) context: &'a RequestContext<RoleServer>,
    /// The tracker of work a call leaves behind.
    pub(super) background: &'a TaskTracker,
}

/// Answers one call.
pub(super) async fn handle_call(
    call_request: ToolCallRequest<'_>,
    request: CallToolRequestParams,
) -> Result<CallToolResponse, ErrorData> {
    let ToolCallRequest {
        state: mcp_state,
        client,
        context,
        ..
    } = call_request;
    let Some(tool) = client.context.tools.find(&request.name) else {
        return Err(unknown_tool(client, &request.name));
    };
    let call_context = call_context(call_request, &request)?;
    let call = ToolCall {
        engine: mcp_state.engine(),
        caller: &client.caller,
        client_context: &client.context,
        state: mcp_state,
        context: &call_context,
    };
    let arguments = request.arguments.unwrap_or_default();
    if let Err(failure) = ensure_dispatched_once(call_request, tool, &arguments) {
        return Ok(to_response(call_request, ToolReply::from(failure)));
    }
    // Only a modern call can be answered with something other than its result.
    let retained_arguments = call_context.is_modern().then(|| arguments.clone());
    let notifications = mcp_state.notifications();
    notifications.enter_session(&client.caller).await;
    let _suppress_guard = notifications.suppress_named(&client.caller, &arguments);
    let outcome = tokio::select! {
        biased;
        () = context.ct.cancelled() => return Err(cancelled()),
        answer = invoke(tool, call, arguments) => answer,
    };
    let response = match outcome {
        Ok(reply) => to_response(
            call_request,
            reply.with_queue_wait(call_context.queue_wait()),
        ),
        Err(ToolInterrupt::Failed(failure)) => to_response(call_request, ToolReply::from(failure)),
        Err(ToolInterrupt::BecameTask(tasked)) => {
            let origin = (tool, retained_arguments.unwrap_or_default());
            tasks::create_task(call, origin, *tasked).await.into()
        }
        Err(ToolInterrupt::ElicitNeeded(asking)) => {
            let about = elicit::context_digest(
                &client.caller,
                tool.name,
                &retained_arguments.unwrap_or_default(),
            );
            let required = elicit::input_required(call, &asking, &about);
            required
                .map_err(|error| ErrorData::internal_error(error.to_string(), None))?
                .into()
        }
    };
    publish_ids(call_request, call_context.into_start_guards()).await;
    Ok(response)
}

/// Ensures that a call that types, signals or removes is carried out at most once: where an earlier
/// daemon may have done it, whether it did is unknown.
fn ensure_dispatched_once(
    call_request: ToolCallRequest<'_>,
    tool: &ToolDefinition,
    arguments: &JsonObject,
) -> Result<(), ApiError> {
    let Some(attempt) = call_request.context.extensions.get::<RequestAttempt>() else {
        return Ok(());
    };
    if interrupted::repeat_effect(tool, arguments) == RepeatEffect::Idempotent {
        return Ok(());
    }
    if attempt.was_dispatched() {
        let call = (Some(tool), arguments);
        let engine = call_request.state.engine();
        let cause = InterruptCause::Restart;
        return Err(interrupted::interrupted_failure(
            engine,
            call_request.client,
            cause,
            call,
            &[],
        ));
    }
    attempt.mark_dispatched().map_err(|error| {
        let message = format!("the connection's log cannot be written: {error}");
        ApiError::new(ErrorCode::Internal, message)
    })
}

/// The context of this request: a new call, or one repeated with a person's answer.
fn call_context<'a>(
    call_request: ToolCallRequest<'a>,
    request: &CallToolRequestParams,
) -> Result<CallContext<'a>, ErrorData> {
    let scope = (call_request.context, call_request.background);
    let Some(state) = &request.request_state else {
        return Ok(CallContext::for_call(scope));
    };
    let none = JsonObject::new();
    let arguments = request.arguments.as_ref().unwrap_or(&none);
    let about = elicit::context_digest(&call_request.client.caller, &request.name, arguments);
    let resume_state = call_request
        .state
        .state_sealer()
        .open(&about, state)
        .map_err(|error| {
            let message = format!("requestState is not taken: {error}; call without it");
            ErrorData::invalid_params(message, None)
        })?;
    let replies = request.input_responses.as_ref();
    let reply = replies.and_then(|replies| replies.get(&resume_state.interaction));
    let reply = reply.map_or(elicit::FormReply::Invalid, |reply| {
        elicit::FormReply::parse(reply.clone())
    });
    Ok(CallContext::for_resumed_call(scope, resume_state, reply))
}

/// Calls the tool. A panic in it becomes an error response, so that the client always gets one.
async fn invoke(
    tool: &'static ToolDefinition,
    call: ToolCall<'_>,
    arguments: JsonObject,
) -> tools::ToolResult {
    // State it leaves behind is shared only through locks that ignore poisoning.
    let invocation = AssertUnwindSafe(tools::call_tool(tool, call, arguments)).catch_unwind();
    invocation.await.unwrap_or_else(|_| {
        let message = format!("{} broke off; that is a bug, and the log has it", tool.name);
        Err(ApiError::new(ErrorCode::Internal, message).into())
    })
}

fn to_response(call_request: ToolCallRequest<'_>, reply: ToolReply) -> CallToolResponse {
    let line = call_request
        .state
        .notifications()
        .take_line(&call_request.client.caller);
    to_rmcp::to_call_result(reply, line, call_request.state.options().structured).into()
}

/// Publishes the ids that the answer names: on a stream when it is sent, over HTTP now, unless the
/// request has been cancelled.
async fn publish_ids(call_request: ToolCallRequest<'_>, start_guards: Vec<StartGuard>) {
    let ToolCallRequest {
        client, context, ..
    } = call_request;
    if start_guards.is_empty() || context.ct.is_cancelled() {
        return;
    }
    match call_request.pending {
        Some(pending) => {
            pending.add(&context.id, start_guards);
            // Cancelled in this moment: nothing else would look at the guards again.
            if context.ct.is_cancelled() {
                pending.revoke(&context.id);
            }
        }
        None => {
            for start_guard in start_guards {
                let id = start_guard.id();
                start_guard.detach();
                call_request
                    .state
                    .notifications()
                    .published(&client.caller, id)
                    .await;
            }
        }
    }
}

/// Describes what is wrong with the params of a `tools/call`.
pub(super) fn describe_malformed_params(params: Option<&Value>) -> String {
    let Some(Value::Object(params)) = params else {
        return "params must be an object with 'name', a string, and 'arguments', an object"
            .to_owned();
    };
    let is_wrong = |name: &str, is_right: fn(&Value) -> bool| {
        params.get(name).is_some_and(|value| !is_right(value))
    };
    if !params.contains_key("name") {
        "params.name is missing; it must be a string, the tool's name".to_owned()
    } else if is_wrong("name", Value::is_string) {
        "params.name must be a string, the tool's name".to_owned()
    } else if is_wrong("arguments", Value::is_object) {
        "params.arguments must be an object".to_owned()
    } else if is_wrong("inputResponses", Value::is_object) {
        "params.inputResponses must be an object".to_owned()
    } else if is_wrong("requestState", Value::is_string) {
        "params.requestState must be a string".to_owned()
    } else {
        "params._meta is malformed: it must be an object".to_owned()
    }
}

fn unknown_tool(client: &ConnectedClient, name: &str) -> ErrorData {
    let names: Vec<&str> = client.context.tools.tools().map(|tool| tool.name).collect();
    let known = names.join(", ");
    let message: Cow<'static, str> = format!("unknown tool '{name}'; allowed: {known}").into();
    ErrorData::invalid_params(message, None)
}

/// A response that is never sent: the library drops answers to cancelled requests.
fn cancelled() -> ErrorData {
    ErrorData::internal_error("the request was cancelled", None)
}
