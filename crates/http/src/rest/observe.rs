//! What surrounds every request: its id, and its part in the metrics.

use std::time::Instant;

use axum::Router;
use axum::extract::{MatchedPath, Request, State};
use axum::http::header::CONTENT_LENGTH;
use axum::http::{HeaderName, HeaderValue, Method, StatusCode};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse as _, Response};
use ostler_interface::http::{HttpProblem, SentProblem};
use tracing::Instrument as _;
use uuid::Uuid;

use super::state::RestState;

/// The header with the id of a request, in both directions.
pub const REQUEST_ID_HEADER: HeaderName = HeaderName::from_static("x-request-id");
/// The longest id that is taken from a client, in characters.
const REQUEST_ID_CHARS: usize = 128;

/// The same routes; each response has the id of its request, which problem documents and the log
/// name too, and is counted in the metrics of `state`.
pub fn observe(router: Router, state: &RestState) -> Router {
    router.layer(middleware::from_fn_with_state(
        state.clone(),
        observe_request,
    ))
}

async fn observe_request(State(state): State<RestState>, request: Request, next: Next) -> Response {
    let begin = Instant::now();
    let id = request_id(&request);
    let method = request.method().clone();
    let route = request.extensions().get::<MatchedPath>().cloned();
    let span = tracing::info_span!("request", id = id.to_str().unwrap_or_default());
    let response = next.run(request).instrument(span.clone()).await;
    let (status, took) = (response.status(), begin.elapsed());
    let route = route.as_ref().map(MatchedPath::as_str);
    state.metrics.count(&method, route, status, took);
    span.in_scope(|| log(&method, route, status));
    with_id(response, id)
}

fn log(method: &Method, route: Option<&str>, status: StatusCode) {
    let route = route.unwrap_or("-");
    if status.is_server_error() {
        tracing::error!(%method, route, status = status.as_u16(), "the request failed");
    } else {
        tracing::debug!(%method, route, status = status.as_u16(), "the request was answered");
    }
}

/// The client's id where it is well-formed (visible ASCII characters), else a new one.
fn request_id(request: &Request) -> HeaderValue {
    let given = request.headers().get(REQUEST_ID_HEADER);
    let is_valid = |value: &&HeaderValue| {
        let bytes = value.as_bytes();
        (1..=REQUEST_ID_CHARS).contains(&bytes.len()) && bytes.iter().all(u8::is_ascii_graphic)
    };
    given.filter(is_valid).cloned().unwrap_or_else(|| {
        let id = Uuid::now_v7().to_string();
        HeaderValue::try_from(id).unwrap_or_else(|_| HeaderValue::from_static("-"))
    })
}

/// Names the request in the response, and in its problem document.
fn with_id(mut response: Response, id: HeaderValue) -> Response {
    if let Some(SentProblem(mut problem)) = response.extensions().get().cloned() {
        problem.request_id = id.to_str().ok().map(Into::into);
        *response.body_mut() = HttpProblem(*problem).into_response().into_body();
        response.headers_mut().remove(CONTENT_LENGTH);
    }
    response.headers_mut().insert(REQUEST_ID_HEADER, id);
    response
}
