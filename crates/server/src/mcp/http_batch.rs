//! JSON-RPC batches over Streamable HTTP, which revision 2025-03-26 has.
//!
//! The library reads one message from each body. A batch reaches it as its first request,
//! which stands for the whole: the library checks headers and session as ever and asks the
//! session's manager for a response stream, and that hands all members on and joins their
//! streams. So its answers come as they are ready, each an event of its own.

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

use super::batch::{self, Member};
use super::http::Doorkeeper;
use super::stdio::message::{Incoming, Malformed};

/// Names the session of a request.
const SESSION_HEADER: &str = "mcp-session-id";
/// Names the revision of a request; 2025-03-26 does not know it yet.
const VERSION_HEADER: &str = "mcp-protocol-version";

/// The messages of a batch with at least one request, in order. Travels with the request that
/// stands for it.
#[derive(Debug, Clone)]
pub(super) struct Batch(Arc<[Incoming]>);

impl Batch {
    /// The messages of the batch that this request stands for, as if each had come by itself.
    pub(super) fn behind(message: &ClientJsonRpcMessage) -> Option<Vec<Incoming>> {
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

/// What a batch comes to before anything of it is carried out.
#[derive(Debug, Default)]
struct Sorted {
    messages: Vec<Incoming>,
    refused: Vec<Value>,
}

/// Answers a batch.
///
/// # Errors
/// Why it is not taken as a whole.
pub(super) async fn answer(
    door: &dyn Doorkeeper,
    parts: Parts,
    values: Vec<Value>,
    next: Next,
) -> Result<Response, Malformed> {
    if let Some(refused) = not_taken(door, &parts.headers) {
        return Err(refused);
    }
    let sorted = sorted(batch::members(values)?);
    let is_request = |message: &&Incoming| matches!(message, JsonRpcMessage::Request(_));
    Ok(match sorted.messages.iter().find(is_request) {
        Some(first) => {
            let first = body(first);
            requests(parts, first, sorted, next).await
        }
        None => no_requests(parts, sorted, next).await,
    })
}

/// Why a client of this session sends no batches. An unknown session is the library's to tell.
fn not_taken(door: &dyn Doorkeeper, headers: &HeaderMap) -> Option<Malformed> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let Some(session) = text(SESSION_HEADER) else {
        return Some(batch::not_taken(text(VERSION_HEADER)));
    };
    let hello = door.known(session)?;
    let begun = hello["protocolVersion"].as_str();
    let spoken = [begun, text(VERSION_HEADER)].into_iter().flatten();
    let mut others = spoken.filter(|it| *it != batch::REVISION.as_str());
    others.next().map(|other| batch::not_taken(Some(other)))
}

fn sorted(members: Vec<Member>) -> Sorted {
    let mut sorted = Sorted::default();
    for member in members {
        match member {
            Member::Message(message) => sorted.messages.push(*message),
            Member::Refused(malformed) => sorted.refused.push(malformed.response()),
            Member::Ignored => {}
        }
    }
    sorted
}

fn body(message: &Incoming) -> Bytes {
    serde_json::to_vec(message).unwrap_or_default().into()
}

fn request(mut parts: Parts, body: Bytes) -> Request {
    parts.headers.remove(CONTENT_LENGTH);
    Request::from_parts(parts, Body::from(body))
}

/// One stream: first what was refused, then the answers as they come.
async fn requests(mut parts: Parts, first: Bytes, sorted: Sorted, next: Next) -> Response {
    parts.extensions.insert(Batch(sorted.messages.into()));
    let response = next.run(request(parts, first)).await;
    if sorted.refused.is_empty() || response.status() != StatusCode::OK {
        return response;
    }
    let events = sorted.refused.iter().map(|it| format!("data: {it}\n\n"));
    let events = Bytes::from(events.collect::<String>());
    response.map(|body| {
        let told = stream::once(async { Ok(events) });
        Body::from_stream(told.chain(body.into_data_stream()))
    })
}

/// Notifications and responses are accepted one by one; there is an answer only where
/// something was refused.
async fn no_requests(parts: Parts, sorted: Sorted, next: Next) -> Response {
    let none_taken = sorted.messages.is_empty();
    for message in &sorted.messages {
        let request = request(parts.clone(), body(message));
        let response = next.clone().run(request).await;
        if !response.status().is_success() {
            return response;
        }
    }
    match (sorted.refused.is_empty(), none_taken) {
        (true, _) => StatusCode::ACCEPTED.into_response(),
        (false, true) => (StatusCode::BAD_REQUEST, Json(sorted.refused)).into_response(),
        (false, false) => Json(sorted.refused).into_response(),
    }
}
