//! JSON-RPC batches over Streamable HTTP, which exist in MCP revision 2025-03-26.
//!
//! The library reads one message from each body. A batch reaches it as its first request, which
//! represents the whole: the library checks headers and session as usual and requests a response
//! stream from the session manager, which dispatches all members and joins their streams. So
//! answers come as they are ready, each as its own event.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::Request;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use http::header::CONTENT_LENGTH;
use http::request::Parts;
use http::{HeaderMap, StatusCode};
use rmcp::model::{ClientJsonRpcMessage, GetExtensions as _, JsonRpcMessage};
use serde_json::Value;

use crate::json_rpc::{
    BATCH_REVISION, BatchMember, IncomingMessage, Malformed, parse_members, unsupported_batch,
};
use crate::session_hooks::{MCP_SESSION_HEADER, SessionHooks};

/// The header with the revision of a request, which 2025-03-26 does not have yet.
const VERSION_HEADER: &str = "mcp-protocol-version";

/// The messages of a batch with at least one request, in order. An extension of the request that
/// represents the batch.
#[derive(Debug, Clone)]
pub(super) struct BatchExtension(Arc<[IncomingMessage]>);

impl BatchExtension {
    /// The messages of the batch that this request represents, as if each had come alone.
    pub(super) fn messages_of(message: &ClientJsonRpcMessage) -> Option<Vec<IncomingMessage>> {
        let JsonRpcMessage::Request(request) = message else {
            return None;
        };
        let parts = request.request.extensions().get::<Parts>()?;
        let batch = parts.extensions.get::<Self>()?;
        let mut parts = parts.clone();
        parts.extensions.remove::<Self>();
        let mut messages = batch.0.to_vec();
        for message in &mut messages {
            message.insert_extension(parts.clone());
        }
        Some(messages)
    }
}

/// A batch, sorted by the handling of its members, before any is handled.
#[derive(Debug, Default)]
struct SortedBatch {
    messages: Vec<IncomingMessage>,
    rejected: Vec<Value>,
}

/// Answers a batch.
///
/// # Errors
/// Why it is refused as a whole.
pub(super) async fn handle_batch(
    hooks: &dyn SessionHooks,
    parts: Parts,
    values: Vec<Value>,
    next: Next,
) -> Result<Response, Malformed> {
    if let Some(refused) = check_batch_supported(hooks, &parts.headers) {
        return Err(refused);
    }
    let sorted = sort(parse_members(values)?);
    let is_request = |message: &&IncomingMessage| matches!(message, JsonRpcMessage::Request(_));
    Ok(match sorted.messages.iter().find(is_request) {
        Some(first) => {
            let first = to_body(first);
            run_with_requests(parts, first, sorted, next).await
        }
        None => run_without_requests(parts, sorted, next).await,
    })
}

/// Why a client of this session sends no batches. The library reports an unknown session.
fn check_batch_supported(hooks: &dyn SessionHooks, headers: &HeaderMap) -> Option<Malformed> {
    let header = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let Some(session) = header(MCP_SESSION_HEADER) else {
        return Some(unsupported_batch(header(VERSION_HEADER)));
    };
    let initialize_params = hooks.initialize_params(session)?;
    let negotiated = initialize_params["protocolVersion"].as_str();
    let revisions = [negotiated, header(VERSION_HEADER)].into_iter().flatten();
    let mut others = revisions.filter(|it| *it != BATCH_REVISION.as_str());
    others.next().map(|other| unsupported_batch(Some(other)))
}

fn sort(members: Vec<BatchMember>) -> SortedBatch {
    let mut sorted = SortedBatch::default();
    for member in members {
        match member {
            BatchMember::Message(message) => sorted.messages.push(*message),
            BatchMember::Refused(malformed) => sorted.rejected.push(malformed.response()),
            BatchMember::Ignored => {}
        }
    }
    sorted
}

fn to_body(message: &IncomingMessage) -> Bytes {
    serde_json::to_vec(message).unwrap_or_default().into()
}

fn to_request(mut parts: Parts, body: Bytes) -> Request {
    parts.headers.remove(CONTENT_LENGTH);
    Request::from_parts(parts, Body::from(body))
}

/// One stream: first the errors of refused members, then the answers as they come.
async fn run_with_requests(
    mut parts: Parts,
    first: Bytes,
    sorted: SortedBatch,
    next: Next,
) -> Response {
    parts
        .extensions
        .insert(BatchExtension(sorted.messages.into()));
    let response = next.run(to_request(parts, first)).await;
    if sorted.rejected.is_empty() || response.status() != StatusCode::OK {
        return response;
    }
    let events = sorted.rejected.iter().map(|it| format!("data: {it}\n\n"));
    let events = Bytes::from(events.collect::<String>());
    response.map(|body| {
        let rejected_events = stream::once(async { Ok(events) });
        Body::from_stream(rejected_events.chain(body.into_data_stream()))
    })
}

/// Accepts notifications and responses one by one; there is a body only where some were refused.
async fn run_without_requests(parts: Parts, sorted: SortedBatch, next: Next) -> Response {
    let none_accepted = sorted.messages.is_empty();
    for message in &sorted.messages {
        let request = to_request(parts.clone(), to_body(message));
        let response = next.clone().run(request).await;
        if !response.status().is_success() {
            return response;
        }
    }
    match (sorted.rejected.is_empty(), none_accepted) {
        (true, _) => StatusCode::ACCEPTED.into_response(),
        (false, true) => (StatusCode::BAD_REQUEST, Json(sorted.rejected)).into_response(),
        (false, false) => Json(sorted.rejected).into_response(),
    }
}
