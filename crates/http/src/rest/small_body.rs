//! Bodies that are read before a request is looked at.

use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::header::CONTENT_LENGTH;
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use ostler_interface::http::HttpProblem;

/// The length of a body up to which it is read first.
const SMALL_BODY_BYTES: usize = 64 * 1024;

/// Reads a small body before the route answers: a refusal that leaves a body unread closes the
/// connection, and a client that is still writing then sees a broken pipe and no refusal.
pub(super) async fn read_small_body(request: Request, next: Next) -> Response {
    let length = request.headers().get(CONTENT_LENGTH);
    let length = length.and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
    if !length.is_some_and(|length| (1..=SMALL_BODY_BYTES).contains(&length)) {
        return next.run(request).await;
    }
    let (parts, body) = request.into_parts();
    match to_bytes(body, SMALL_BODY_BYTES).await {
        Ok(bytes) => {
            next.run(Request::from_parts(parts, Body::from(bytes)))
                .await
        }
        Err(error) => {
            let message = format!("the body of the request cannot be read: {error}");
            HttpProblem::value(message).with_status(400).into_response()
        }
    }
}
