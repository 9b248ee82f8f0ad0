//! What a browser may do with a response that it shows as a page: nothing, unless the response says
//! otherwise.

use axum::http::HeaderValue;
use axum::http::header::{CONTENT_SECURITY_POLICY, X_CONTENT_TYPE_OPTIONS};
use axum::response::Response;

const NOTHING: HeaderValue = HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'");
const NOSNIFF: HeaderValue = HeaderValue::from_static("nosniff");

/// The same response: not taken for another type than it has, and with a policy that lets it load
/// nothing, run nothing and be framed by nobody where it has none of its own.
pub(crate) async fn with_policy(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.entry(CONTENT_SECURITY_POLICY).or_insert(NOTHING);
    headers.insert(X_CONTENT_TYPE_OPTIONS, NOSNIFF);
    response
}
