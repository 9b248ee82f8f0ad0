//! Rejects HTTP bodies that hold no message with a JSON-RPC error and status 400, where the library
//! would answer in plain text. Batches are handled by [`batch`].

use std::error::Error as _;
use std::sync::Arc;

use axum::Json;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::{Method, StatusCode};
use http_body_util::LengthLimitError;
use ostler_interface::http::encoding_problem;
use rmcp::model::ErrorCode;

use super::batch;
use crate::json_rpc::{Malformed, ParsedLine, parse_message};
use crate::session_hooks::SessionHooks;

/// What bodies are checked against.
#[derive(Debug, Clone)]
pub(super) struct BodyCheck {
    /// The largest body, in bytes.
    pub(super) limit: usize,
    /// Looks up sessions.
    pub(super) hooks: Arc<dyn SessionHooks>,
}

/// Passes on a request that holds a message or a batch. The library checks its params.
pub(super) async fn check_body(
    State(BodyCheck { limit, hooks: door }): State<BodyCheck>,
    request: Request,
    next: Next,
) -> Response {
    if request.method() != Method::POST {
        return next.run(request).await;
    }
    let (parts, body) = request.into_parts();
    if let Some(problem) = encoding_problem(&parts.headers) {
        let refused = Malformed::request(None, problem);
        return error_response(StatusCode::UNSUPPORTED_MEDIA_TYPE, &refused);
    }
    let bytes = match to_bytes(body, limit).await {
        Ok(bytes) => without_bom(bytes),
        Err(error) => return unread_response(&error, limit),
    };
    let refused = match parse_message(&bytes) {
        ParsedLine::Blank => Malformed::parse(None, "the body is empty".to_owned()),
        ParsedLine::Malformed(malformed) if malformed.error.code != ErrorCode::INVALID_PARAMS => {
            malformed
        }
        ParsedLine::Batch(values) => match batch::handle_batch(&*door, parts, values, next).await {
            Ok(response) => return response,
            Err(refused) => refused,
        },
        ParsedLine::Message(_) | ParsedLine::Malformed(_) | ParsedLine::Ignored => {
            let request = Request::from_parts(parts, Body::from(bytes));
            return next.run(request).await;
        }
    };
    error_response(StatusCode::BAD_REQUEST, &refused)
}

/// Why the body was not read.
fn unread_response(error: &axum::Error, limit: usize) -> Response {
    let is_too_long = error.source().is_some_and(|it| it.is::<LengthLimitError>());
    let (status, message) = if is_too_long {
        let message = format!("the body is too large; allowed: {limit} bytes");
        (StatusCode::PAYLOAD_TOO_LARGE, message)
    } else {
        (
            StatusCode::BAD_REQUEST,
            format!("the body broke off: {error}"),
        )
    };
    error_response(status, &Malformed::request(None, message))
}

/// The library refuses a body that begins with a byte order mark.
fn without_bom(bytes: Bytes) -> Bytes {
    const BOM: &[u8] = b"\xEF\xBB\xBF";
    if bytes.starts_with(BOM) {
        bytes.slice(BOM.len()..)
    } else {
        bytes
    }
}

fn error_response(status: StatusCode, malformed: &Malformed) -> Response {
    (status, Json(malformed.response())).into_response()
}
