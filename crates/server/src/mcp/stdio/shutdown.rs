//! The last answers of a service that is told to end.

use std::time::Duration;

use ostler_engine::Engine;
use rmcp::model::{
    CallToolRequestParams, ClientRequest, ErrorData, JsonRpcMessage, JsonRpcRequest,
};
use serde_json::json;
use tokio::time::timeout;

use super::backlog::Pending;
use super::message::{self, Parsed};
use super::shared::{Line, Shared};
use crate::mcp::batch::{self, Member};
use crate::mcp::context::Client;
use crate::mcp::interrupted::{self, Cause};

/// How long the client may take to read the answers, in milliseconds.
const WRITE_MS: u64 = 1_000;

/// Reads nothing more, and answers every request under way but subscriptions, which the next
/// service goes on with.
pub(super) async fn answer(engine: &Engine, client: &Client, shared: &Shared) {
    let live = shared.log.seal();
    let mut lines = Vec::new();
    for (_, pending) in &live {
        for (member, request) in requests(pending) {
            lines.extend(answered(engine, client, shared, (pending, member, request)));
        }
    }
    // From here on nothing of the service goes out.
    shared.seal();
    let limit = Duration::from_millis(WRITE_MS);
    if !matches!(timeout(limit, shared.write(&mut lines)).await, Ok(Ok(()))) {
        tracing::info!("a client did not read the answers to its last requests");
    }
}

type Request = JsonRpcRequest<ClientRequest>;

/// The requests of a line, each with its place.
fn requests(pending: &Pending) -> Vec<(u32, Request)> {
    let members = match message::parse(&pending.text) {
        Parsed::Message(message) => vec![Member::Message(message)],
        Parsed::Batch(values) => batch::members(values).unwrap_or_default(),
        Parsed::Blank | Parsed::Malformed(_) | Parsed::Ignored => Vec::new(),
    };
    let requests = (0..).zip(members).filter_map(|(place, member)| {
        let Member::Message(message) = member else {
            return None;
        };
        match *message {
            JsonRpcMessage::Request(request) => Some((place, request)),
            JsonRpcMessage::Response(_)
            | JsonRpcMessage::Notification(_)
            | JsonRpcMessage::Error(_) => None,
        }
    });
    requests.collect()
}

fn answered(
    engine: &Engine,
    client: &Client,
    shared: &Shared,
    (pending, member, request): (&Pending, u32, Request),
) -> Option<Line> {
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
        return shared.answer(&id, false, &answer);
    };
    let params: CallToolRequestParams = call.params;
    let bound = pending.bindings.iter().filter(|it| it.member == member);
    let started: Vec<_> = bound.map(|it| it.id).collect();
    let arguments = params.arguments.unwrap_or_default();
    let call = (params.name.as_ref(), &arguments);
    let result = interrupted::result(engine, client, Cause::Shutdown, call, &started);
    let answer = json!({"jsonrpc": "2.0", "id": id, "result": result});
    shared.answer(&id, true, &answer)
}
