//! Limits requests while few descriptors are left.

use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::http::header::{ACCEPT, CONNECTION, UPGRADE};
use axum::http::{HeaderValue, Method};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use ostler_engine::error::OPEN_FILES_HINT;
use ostler_engine::wait_for_free_fds;
use ostler_model::ErrorCode;
use ostler_sys::open_files;
use tokio::time::{Instant, timeout};

use super::accept_policy::LONG_REQUEST_FILES;
use ostler_interface::http::{HttpProblem, SentProblem};

/// Timeout of a single request until its response begins, in milliseconds: longer than a graceful
/// stop.
const RESPONSE_MS: u64 = 10_000;
/// How long a read-only request is retried for want of descriptors, in milliseconds.
const RETRY_MS: u64 = 10_000;

/// An extension of requests on a connection limited to a single one.
#[derive(Debug, Clone, Copy)]
pub(super) struct SingleRequestOnly;

/// Refuses long requests while other peers wait for their turn, and retries read-only ones.
pub(super) async fn limit_requests(request: Request, next: Next) -> Response {
    let single_request = request.extensions().get::<SingleRequestOnly>().is_some();
    if is_long_lived(&request)
        && (single_request || open_files::available(LONG_REQUEST_FILES) < LONG_REQUEST_FILES)
    {
        return shortage_response("too few are left for a request that lasts");
    }
    if !single_request {
        return respond(request, next).await;
    }
    let response = async {
        // Read-only requests leave the rest to connections accepted before.
        if request.method() == Method::GET {
            wait_for_free_fds().await;
        }
        respond(request, next).await
    };
    let timed = timeout(Duration::from_millis(RESPONSE_MS), response).await;
    let mut response = timed.unwrap_or_else(|_| {
        shortage_response("this request lasts too long, and others wait; what it began goes on")
    });
    let close = HeaderValue::from_static("close");
    response.headers_mut().insert(CONNECTION, close);
    response
}

/// Whether a request may last as long as the client likes: it follows, waits, or upgrades.
fn is_long_lived(request: &Request) -> bool {
    let (uri, headers) = (request.uri(), request.headers());
    let follows = |query: &str| {
        form_urlencoded::parse(query.as_bytes())
            .any(|(name, value)| name == "follow" && !["false", "0"].contains(&&*value))
    };
    let accepts_events = |accept: &HeaderValue| {
        accept
            .to_str()
            .is_ok_and(|accept| accept.contains("text/event-stream"))
    };
    headers.contains_key(UPGRADE)
        || uri.path().ends_with("/wait")
        || uri.query().is_some_and(follows)
        || (request.method() == Method::GET && headers.get(ACCEPT).is_some_and(accepts_events))
}

/// The response; a read-only request is retried until it finds descriptors.
async fn respond(request: Request, next: Next) -> Response {
    if request.method() != Method::GET {
        return next.run(request).await;
    }
    let (parts, body) = request.into_parts();
    let retry_parts = parts.clone();
    let mut response = next.clone().run(Request::from_parts(parts, body)).await;
    let deadline = Instant::now() + Duration::from_millis(RETRY_MS);
    while is_descriptor_shortage(&response) && Instant::now() < deadline {
        wait_for_free_fds().await;
        let request = Request::from_parts(retry_parts.clone(), Body::empty());
        response = next.clone().run(request).await;
    }
    response
}

/// Whether a request failed for want of descriptors. Other quotas have the same code, and free
/// descriptors do not change them.
fn is_descriptor_shortage(response: &Response) -> bool {
    let problem = response.extensions().get::<SentProblem>();
    problem.is_some_and(|SentProblem(problem)| {
        problem.code.0 == ErrorCode::QuotaExceeded
            && problem.hint.as_deref() == Some(OPEN_FILES_HINT)
    })
}

fn shortage_response(reason: &str) -> Response {
    let message = format!("the daemon may open no more files (RLIMIT_NOFILE): {reason}");
    let hint = Some(OPEN_FILES_HINT.to_owned());
    HttpProblem::new(ErrorCode::QuotaExceeded, message, hint).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(method: &str, path: &str, header: Option<(&str, &str)>) -> Request {
        let mut request = Request::builder().method(method).uri(path);
        if let Some((name, value)) = header {
            request = request.header(name, value);
        }
        request.body(Body::empty()).expect("a request")
    }

    #[test]
    fn only_a_want_of_descriptors_is_tried_again() {
        assert!(is_descriptor_shortage(&shortage_response("none is left")));
        let quota = HttpProblem::new(ErrorCode::QuotaExceeded, "too many", None);
        assert!(!is_descriptor_shortage(&quota.into_response()));
        assert!(!is_descriptor_shortage(&Response::new(Body::empty())));
    }

    #[test]
    fn a_lasting_request_is_recognized_by_its_head() {
        let events = Some(("accept", "text/event-stream"));
        for long in [
            request("POST", "/api/v1/executions/x/wait", None),
            request(
                "GET",
                "/api/v1/executions/x/raw?follow=true&lossless=true",
                None,
            ),
            request("GET", "/x/terminal", Some(("upgrade", "websocket"))),
            request("GET", "/mcp", events),
        ] {
            assert!(is_long_lived(&long), "{long:?}");
        }
        for short in [
            request("POST", "/api/v1/executions/x/stop", None),
            request("GET", "/api/v1/executions/x/raw?follow=false", None),
            request("GET", "/api/v1/executions/x/raw", None),
            request("POST", "/mcp", events),
            request(
                "GET",
                "/api/v1/executions",
                Some(("accept", "application/json")),
            ),
        ] {
            assert!(!is_long_lived(&short), "{short:?}");
        }
    }
}
