//! The last answers of a daemon that is shutting down.

use std::time::Duration;

use ostler_engine::Engine;
use rmcp::model::{
    CallToolRequestParams, ClientRequest, ErrorData, JsonRpcMessage, JsonRpcRequest,
};
use serde_json::json;
use tokio::time::timeout;

use super::shared_state::{OutputLine, StdioShared};
use crate::client::ConnectedClient;
use crate::connection_log::PendingLine;
use crate::interrupted::{CallEffect, InterruptCause, InterruptedCall};
use crate::json_rpc::{BatchMember, ParsedLine, parse_members, parse_message};
use crate::tools;

/// How long the client may take to read the answers, in milliseconds.
const WRITE_MS: u64 = 1_000;

/// Stops reading, and answers every request under way but subscriptions, which the next daemon
/// continues.
pub(super) async fn answer_open_requests(
    engine: &Engine,
    client: &ConnectedClient,
    shared: &StdioShared,
) {
    let unanswered = shared.log.seal();
    let mut lines = Vec::new();
    for (_, pending) in &unanswered {
        for (member, request) in requests_of(pending) {
            lines.extend(shutdown_answer(
                engine, client, shared, pending, member, request,
            ));
        }
    }
    // From here on the daemon's messages are dropped.
    shared.seal();
    let limit = Duration::from_millis(WRITE_MS);
    if !matches!(timeout(limit, shared.write(&mut lines)).await, Ok(Ok(()))) {
        tracing::info!("a client did not read the answers to its last requests");
    }
}

type ClientJsonRequest = JsonRpcRequest<ClientRequest>;

/// The requests of a line, each with its index in the batch.
fn requests_of(pending: &PendingLine) -> Vec<(u32, ClientJsonRequest)> {
    let members = match parse_message(&pending.text) {
        ParsedLine::Message(message) => vec![BatchMember::Message(message)],
        ParsedLine::Batch(values) => parse_members(values).unwrap_or_default(),
        ParsedLine::Blank | ParsedLine::Malformed(_) | ParsedLine::Ignored => Vec::new(),
    };
    let requests = (0..).zip(members).filter_map(|(index, member)| {
        let BatchMember::Message(message) = member else {
            return None;
        };
        match *message {
            JsonRpcMessage::Request(request) => Some((index, request)),
            JsonRpcMessage::Response(_)
            | JsonRpcMessage::Notification(_)
            | JsonRpcMessage::Error(_) => None,
        }
    });
    requests.collect()
}

fn shutdown_answer(
    engine: &Engine,
    client: &ConnectedClient,
    shared: &StdioShared,
    pending: &PendingLine,
    member: u32,
    request: ClientJsonRequest,
) -> Option<OutputLine> {
    let id = request.id;
    if matches!(
        request.request,
        ClientRequest::SubscriptionsListenRequest(_)
    ) {
        return None;
    }
    let ClientRequest::CallToolRequest(call) = request.request else {
        let message = "the daemon was shut down before it answered; send the request again: \
                       the next one starts a daemon";
        let error = ErrorData::internal_error(message, None);
        let answer = json!({"jsonrpc": "2.0", "id": id, "error": error});
        return shared.answer_line(&id, false, &answer);
    };
    let params: CallToolRequestParams = call.params;
    let bindings = pending.bindings.iter().filter(|it| it.member == member);
    let started_ids: Vec<_> = bindings.map(|it| it.id).collect();
    let arguments = params.arguments.unwrap_or_default();
    let tool = tools::find_tool(client.context.tools, &params.name);
    let effect = tool.map(|tool| CallEffect::of(tool, &arguments));
    let call = InterruptedCall::new(client, effect, &started_ids);
    let result = call.result(engine, &client.caller, InterruptCause::Shutdown);
    let answer = json!({"jsonrpc": "2.0", "id": id, "result": result});
    shared.answer_line(&id, true, &answer)
}
