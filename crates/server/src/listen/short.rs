//! What a request may do where few descriptors are left.

use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::http::header::{ACCEPT, CONNECTION, UPGRADE};
use axum::http::{HeaderValue, Method};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use ostler_engine::error::OPEN_FILES_HINT;
use ostler_engine::{open_files, room_to_read};
use ostler_model::ErrorCode;
use tokio::time::{Instant, timeout};

use super::turn::LONG;
use crate::wire::{CodeName, Problem};

/// How long a request that is served in turn may take until its answer begins, in milliseconds:
/// longer than a polite stop.
const IN_TURN_MS: u64 = 10_000;
/// How long what only looks is tried again for want of descriptors, in milliseconds.
const AGAIN_MS: u64 = 10_000;

/// Among the extensions of requests that are served in turn.
#[derive(Debug, Clone, Copy)]
pub(super) struct InTurn;

/// Refuses what would last where nobody else could be served meanwhile, and tries again what
/// only looks.
pub(super) async fn guard(request: Request, next: Next) -> Response {
    let in_turn = request.extensions().get::<InTurn>().is_some();
    if is_long(&request) && (in_turn || open_files::available(LONG) < LONG) {
        return refused("too few are left for a request that lasts");
    }
    if !in_turn {
        return answer(request, next).await;
    }
    let answered = async {
        // What only looks leaves the rest to those that were accepted before.
        if request.method() == Method::GET {
            room_to_read().await;
        }
        answer(request, next).await
    };
    let answered = timeout(Duration::from_millis(IN_TURN_MS), answered).await;
    let mut response = answered.unwrap_or_else(|_| {
        refused("this request lasts too long, and others wait; what it began goes on")
    });
    let close = HeaderValue::from_static("close");
    response.headers_mut().insert(CONNECTION, close);
    response
}

/// Whether a request may last as long as the client likes: it follows, waits, or becomes another
/// protocol.
fn is_long(request: &Request) -> bool {
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

/// The answer; of what only looks, one that found descriptors.
async fn answer(request: Request, next: Next) -> Response {
    if request.method() != Method::GET {
        return next.run(request).await;
    }
    let (parts, body) = request.into_parts();
    let again = parts.clone();
    let mut response = next.clone().run(Request::from_parts(parts, body)).await;
    let deadline = Instant::now() + Duration::from_millis(AGAIN_MS);
    while is_for_want(&response) && Instant::now() < deadline {
        room_to_read().await;
        let request = Request::from_parts(again.clone(), Body::empty());
        response = next.clone().run(request).await;
    }
    response
}

/// Whether a look was refused for want of descriptors, the only quota there is for looks.
fn is_for_want(response: &Response) -> bool {
    let code = response.extensions().get::<CodeName>();
    code.is_some_and(|code| code.0 == ErrorCode::QuotaExceeded)
}

fn refused(why: &str) -> Response {
    let message = format!("the daemon may open no more files (RLIMIT_NOFILE): {why}");
    let hint = Some(OPEN_FILES_HINT.to_owned());
    Problem::new(ErrorCode::QuotaExceeded, message, hint).into_response()
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
    fn what_lasts_is_told_by_its_head() {
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
            assert!(is_long(&long), "{long:?}");
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
            assert!(!is_long(&short), "{short:?}");
        }
    }
}
