//! Limits of the size of a request.

use axum::body::Body;
use axum::extract::Request;
use axum::http::header::CONTENT_LENGTH;
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use http_body_util::Limited;
use ostler_interface::http::{BODY_BYTES, too_large};

use crate::rest::BodyLimit;

/// Rejects a request whose declared length is too large; an undeclared one is cut off at the limit.
pub(crate) async fn reject_too_large(request: Request, next: Next) -> Response {
    let length_header = request.headers().get(CONTENT_LENGTH);
    let length = length_header.and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if length.is_some_and(|length| length > BODY_BYTES as u64) {
        return too_large().into_response();
    }
    next.run(request).await
}

/// The same request with a body that fails at the limit.
pub(crate) fn limit_body(mut request: Request) -> Request {
    request.extensions_mut().insert(BodyLimit(BODY_BYTES));
    request.map(|body| Body::new(Limited::new(body, BODY_BYTES)))
}
