//! `tools/call`: from the request to a tool and back, whatever kind of response results.

use std::borrow::Cow;
use std::panic::AssertUnwindSafe;
use std::slice::from_ref;

use futures_util::FutureExt as _;
use ostler_engine::{RefusedRequest, StartGuard};
use ostler_model::{Caller, ErrorCode, ExecutionId};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, JsonObject, ProtocolVersion,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::call_context::{CallContext, RequestScope};
use super::client::ConnectedClient;
use super::connection_log::RequestAttempt;
use super::form::FormReply;
use super::interrupted::{CallEffect, InterruptCause, InterruptedCall, RepeatEffect};
use super::pending_deliveries::PendingDeliveries;
use super::planned_start::PlannedStart;
use super::refusal::record_refusal;
use super::reply::{ToolInterrupt, ToolReply};
use super::state::McpState;
use super::tool_call::ToolCall;
use super::tools::ToolDefinition;
use super::{elicit, request_state, tasks, to_rmcp, tool_access, tools};
use ostler_interface::error::ApiError;

/// The caller of a request, and how its answer is delivered.
#[derive(Debug, Clone, Copy)]
pub(super) struct ToolCallRequest<'a> {
    pub(super) state: &'a McpState,
    pub(super) client: &'a ConnectedClient,
    pub(super) transport: CallTransport<'a>,
    pub(super) context: &'a RequestContext<RoleServer>,
    /// The tracker of background work of calls.
    pub(super) background: &'a TaskTracker,
}

/// How the answer to a call is delivered. It is given at once when `shutdown` is cancelled.
#[derive(Debug, Clone, Copy)]
pub(super) enum CallTransport<'a> {
    /// On a stream: ids in it are published when it is sent.
    Stream {
        pending: &'a PendingDeliveries,
        shutdown: Option<&'a CancellationToken>,
    },
    /// As the response of a request.
    Http { shutdown: &'a CancellationToken },
}

impl<'a> CallTransport<'a> {
    const fn shutdown(self) -> Option<&'a CancellationToken> {
        match self {
            Self::Stream { shutdown, .. } => shutdown,
            Self::Http { shutdown } => Some(shutdown),
        }
    }

    /// Resolves when a call can wait no longer.
    async fn shut_down(self) {
        match self.shutdown() {
            Some(shutdown) => shutdown.cancelled().await,
            None => std::future::pending().await,
        }
    }
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
    let Some(tool) = tools::find_tool(client.context.tools, &request.name) else {
        return Err(unknown_tool(client, &request.name));
    };
    let call_context = call_context(call_request, &request)?;
    let no_arguments = JsonObject::new();
    let arguments = request.arguments.as_ref().unwrap_or(&no_arguments);
    let permitted = tool_access::caller_of(client, tool, arguments).inspect_err(|failure| {
        let refused = RefusedRequest::new(format!("tool {}", tool.name));
        record_refusal(mcp_state.engine(), &client.caller, refused, failure);
    });
    let permitted = permitted.and_then(|caller| {
        ensure_dispatched_once(call_request, tool, arguments)?;
        Ok(caller)
    });
    let caller = match permitted {
        Ok(caller) => caller,
        Err(failure) => return Ok(to_response(call_request, ToolReply::from(failure))),
    };
    let call = ToolCall {
        engine: mcp_state.engine(),
        caller: &caller,
        access: &client.access,
        client_context: &client.context,
        state: mcp_state,
        context: &call_context,
    };
    let arguments = request.arguments.unwrap_or_default();
    // Only a modern call can be answered with something other than its result.
    let retained_arguments = call_context.is_modern().then(|| arguments.clone());
    let effect = CallEffect::of(tool, &arguments);
    disclose_named(call_request, &caller, &arguments);
    let notifications = mcp_state.notifications();
    notifications.enter_session(&client.caller).await;
    let _suppress_guard = notifications.suppress_named(&client.caller, &arguments);
    let outcome = tokio::select! {
        biased;
        () = context.ct.cancelled() => return Err(cancelled()),
        outcome = invoke(tool, call, arguments) => outcome,
        () = call_request.transport.shut_down() => {
            return Ok(shut_down_answer(call_request, effect, &call_context).into());
        }
    };
    let response = match outcome {
        Ok(reply) => to_response(
            call_request,
            reply
                .with_queue_wait(call_context.queue_wait())
                .with_wait_problem(call_context.take_wait_problem()),
        ),
        Err(interrupt) => {
            let arguments = retained_arguments.unwrap_or_default();
            interrupt_response(call_request, call, tool, arguments, interrupt).await?
        }
    };
    let published = publish_ids(call_request, call_context.into_start_guards()).await;
    Ok(published.map_or_else(
        |error| to_response(call_request, ToolReply::from(ApiError::from(error))),
        |()| response,
    ))
}

/// The response to a call that has no result, or not yet.
async fn interrupt_response(
    call_request: ToolCallRequest<'_>,
    call: ToolCall<'_>,
    tool: &'static ToolDefinition,
    arguments: JsonObject,
    interrupt: ToolInterrupt,
) -> Result<CallToolResponse, ErrorData> {
    match interrupt {
        ToolInterrupt::Failed(failure) => Ok(to_response(call_request, ToolReply::from(failure))),
        ToolInterrupt::BecameTask(tasked) => {
            let task = tasks::create_task(call, tool, arguments, *tasked);
            Ok(task.await.into())
        }
        ToolInterrupt::ElicitNeeded(asking) => {
            let caller = &call_request.client.caller;
            let about = request_state::context_digest(caller, tool.name, &arguments);
            let required = elicit::input_required(call, &asking, &about)
                .map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
            Ok(required.into())
        }
    }
}

/// A client that names an execution has its id, also where it lost the answer over HTTP that named
/// it.
fn disclose_named(call_request: ToolCallRequest<'_>, caller: &Caller, arguments: &JsonObject) {
    let CallTransport::Http { .. } = call_request.transport else {
        return;
    };
    let engine = call_request.state.engine();
    for argument in arguments.values() {
        let words = argument
            .as_array()
            .map_or(from_ref(argument), Vec::as_slice);
        let words = words.iter().filter_map(Value::as_str);
        words.for_each(|word| engine.disclose(caller, word));
    }
}

/// The answer to a call that a shutdown interrupts. What it started goes on.
fn shut_down_answer(
    call_request: ToolCallRequest<'_>,
    effect: CallEffect,
    call_context: &CallContext<'_>,
) -> CallToolResult {
    let ToolCallRequest { state, client, .. } = call_request;
    let started = call_context.planned_start().map(PlannedStart::id);
    if let Some(id) = started {
        state.engine().disclose(&client.caller, &id.short());
    }
    let call = InterruptedCall::new(client, Some(effect), started.as_slice());
    call.result(state.engine(), &client.caller, InterruptCause::Shutdown)
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
    let effect = CallEffect::of(tool, arguments);
    if effect.repeat != RepeatEffect::Repeats {
        return Ok(());
    }
    if attempt.was_dispatched() {
        let ToolCallRequest { state, client, .. } = call_request;
        let call = InterruptedCall::new(client, Some(effect), &[]);
        let cause = InterruptCause::Restart;
        return Err(call.failure(state.engine(), &client.caller, cause));
    }
    attempt.mark_dispatched()
}

/// The context of this request: a new call, or one repeated with a person's answer.
fn call_context<'a>(
    call_request: ToolCallRequest<'a>,
    request: &CallToolRequestParams,
) -> Result<CallContext<'a>, ErrorData> {
    let scope = RequestScope {
        context: call_request.context,
        background: call_request.background,
    };
    let Some(state) = &request.request_state else {
        let context = CallContext::for_call(scope);
        return Ok(match call_request.transport.shutdown() {
            Some(_) => context.with_planned_start(),
            None => context,
        });
    };
    let none = JsonObject::new();
    let arguments = request.arguments.as_ref().unwrap_or(&none);
    let about =
        request_state::context_digest(&call_request.client.caller, &request.name, arguments);
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
    let reply = reply.map_or(FormReply::Invalid, |reply| FormReply::parse(reply.clone()));
    Ok(CallContext::for_resumed_call(scope, resume_state, reply))
}

/// Calls the tool. A panic in it becomes an error response, so that the client always gets one.
async fn invoke(
    tool: &'static ToolDefinition,
    call: ToolCall<'_>,
    arguments: JsonObject,
) -> tools::ToolResult {
    // State that it leaves is shared only through locks, which a panic does not poison.
    let invocation = AssertUnwindSafe(tools::call_tool(tool, call, arguments)).catch_unwind();
    invocation.await.unwrap_or_else(|_| {
        let message = format!("{} broke off; that is a bug, and the log has it", tool.name);
        Err(ApiError::new(ErrorCode::Internal, message).into())
    })
}

/// Whether the client's revision has links to resources in results (2025-06-18 and later): a
/// client of an earlier one may reject the whole result.
fn knows_resource_links(context: &RequestContext<RoleServer>) -> bool {
    let peer = context.peer.peer_info();
    peer.is_none_or(|peer| peer.protocol_version >= ProtocolVersion::V_2025_06_18)
}

fn to_response(call_request: ToolCallRequest<'_>, mut reply: ToolReply) -> CallToolResponse {
    if !knows_resource_links(call_request.context) {
        let uris = reply.links.drain(..);
        let lines = uris.map(|link| format!("{}: resource {}", link.title, link.uri));
        reply.blocks.extend(lines);
    }
    let line = call_request
        .state
        .notifications()
        .take_line(&call_request.client.caller);
    to_rmcp::to_call_result(reply, line, call_request.state.options().structured).into()
}

/// Publishes the ids that the answer names, unless the request has been cancelled: on a stream and in
/// a session over HTTP when it is sent, else now.
///
/// # Errors
/// [`ostler_engine::Error::Closing`] where the engine shuts down and stops one of them.
async fn publish_ids(
    call_request: ToolCallRequest<'_>,
    start_guards: Vec<StartGuard>,
) -> Result<(), ostler_engine::Error> {
    let ToolCallRequest {
        client, context, ..
    } = call_request;
    if start_guards.is_empty() || context.ct.is_cancelled() {
        return Ok(());
    }
    match call_request.transport {
        CallTransport::Stream { pending, .. } => {
            pending.add(&context.id, start_guards);
            // Cancelled at this moment: nothing else would check the guards again.
            if context.ct.is_cancelled() {
                pending.revoke(&context.id);
            }
        }
        CallTransport::Http { .. } => {
            let Some(planned) = context.extensions.get::<PlannedStart>() else {
                let ids: Vec<ExecutionId> = start_guards.iter().map(StartGuard::id).collect();
                start_guards.into_iter().try_for_each(StartGuard::detach)?;
                notify_published(call_request.state, &client.caller, ids).await;
                return Ok(());
            };
            // Its response stream may be lost, and then what it started ends.
            let (state, caller) = (call_request.state.clone(), client.caller.clone());
            let background = call_request.background.clone();
            planned.set_unread(start_guards, move |ids| {
                background.spawn(async move { notify_published(&state, &caller, ids).await });
            });
        }
    }
    Ok(())
}

async fn notify_published(state: &McpState, caller: &Caller, ids: Vec<ExecutionId>) {
    for id in ids {
        state.notifications().published(caller, id).await;
    }
}

fn unknown_tool(client: &ConnectedClient, name: &str) -> ErrorData {
    let names: Vec<&str> = tools::tools_in(client.context.tools)
        .map(|tool| tool.name)
        .collect();
    let known = names.join(", ");
    let message: Cow<'static, str> = format!("unknown tool '{name}'; allowed: {known}").into();
    ErrorData::invalid_params(message, None)
}

/// A response that is never sent: the library drops answers to cancelled requests.
fn cancelled() -> ErrorData {
    ErrorData::internal_error("the request was cancelled", None)
}
