//! Bodies of HTTP requests that hold no message: answered as JSON-RPC answers them, with status
//! 400, where the library answers in plain text. Batches are [`http_batch`]'s.

use std::sync::Arc;

use axum::Json;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::{Method, StatusCode};
use rmcp::model::ErrorCode;

use super::http::Doorkeeper;
use super::http_batch;
use super::stdio::message::{Malformed, Parsed, parse};

/// What bodies are judged by.
#[derive(Debug, Clone)]
pub(super) struct Bodies {
    /// The largest, in bytes.
    pub(super) limit: usize,
    /// Knows the sessions.
    pub(super) door: Arc<dyn Doorkeeper>,
}

/// Lets a request through that holds a message, or a batch of them. Whether params fit is the
/// library's to say.
pub(super) async fn check(
    State(Bodies { limit, door }): State<Bodies>,
    request: Request,
    next: Next,
) -> Response {
    if request.method() != Method::POST {
        return next.run(request).await;
    }
    let (parts, body) = request.into_parts();
    let Ok(bytes) = to_bytes(body, limit).await else {
        let message = format!("the body is longer than {limit} bytes, or broke off");
        return refuse(
            StatusCode::PAYLOAD_TOO_LARGE,
            &Malformed::request(None, message),
        );
    };
    let refused = match parse(&bytes) {
        Parsed::Blank => Malformed::parse(None, "the body is empty".to_owned()),
        Parsed::Malformed(malformed) if malformed.error.code != ErrorCode::INVALID_PARAMS => {
            malformed
        }
        Parsed::Batch(values) => match http_batch::answer(&*door, parts, values, next).await {
            Ok(response) => return response,
            Err(refused) => refused,
        },
        Parsed::Message(_) | Parsed::Malformed(_) | Parsed::Ignored => {
            let request = Request::from_parts(parts, Body::from(bytes));
            return next.run(request).await;
        }
    };
    refuse(StatusCode::BAD_REQUEST, &refused)
}

fn refuse(status: StatusCode, malformed: &Malformed) -> Response {
    (status, Json(malformed.response())).into_response()
}
