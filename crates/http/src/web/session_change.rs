//! The requests that sign in and out. They are answered before authentication: their sender has no
//! credentials yet, or not any more.

use std::time::Duration;

use axum::body::{Body, HttpBody as _, to_bytes};
use axum::extract::Request;
use axum::http::Method;
use axum::http::request::Parts;
use bytes::Bytes;
use ostler_interface::http::HttpProblem;
use tokio::time::timeout;

/// The route, from the prefix of all routes on.
const PATH: &str = "/api/v1/web/session";
/// The largest body, in bytes; a token has 50.
const BODY_BYTES: usize = 4 * 1024;
/// How long a body may take, in milliseconds.
const BODY_MS: u64 = 10_000;

/// Marks such a request, as an extension.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SessionChange;

/// Whether a request below this prefix signs in or out.
pub(crate) fn is_session_change(prefix: &str, parts: &Parts) -> bool {
    let changes = [Method::POST, Method::DELETE].contains(&parts.method);
    changes && parts.uri.path().strip_prefix(prefix) == Some(PATH)
}

/// The request with its whole body, and its mark. Anybody may send one, so that it is small and
/// soon.
///
/// # Errors
/// When the body is too large, or does not arrive in time.
pub(crate) async fn session_change(mut parts: Parts, body: Body) -> Result<Request, HttpProblem> {
    let bytes = read_body(body, Duration::from_millis(BODY_MS)).await?;
    parts.extensions.insert(SessionChange);
    Ok(Request::from_parts(parts, Body::from(bytes)))
}

async fn read_body(body: Body, at_most: Duration) -> Result<Bytes, HttpProblem> {
    let too_large = || {
        let message = format!("the body cannot be read; allowed: {BODY_BYTES} bytes");
        HttpProblem::value(message).with_status(413)
    };
    // Its header says so: none of it needs to arrive.
    if body.size_hint().lower() > BODY_BYTES as u64 {
        return Err(too_large());
    }
    match timeout(at_most, to_bytes(body, BODY_BYTES)).await {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(_)) => Err(too_large()),
        Err(_) => {
            let message = format!("the body did not arrive within {} s", at_most.as_secs());
            Err(HttpProblem::value(message).with_status(408))
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::stream;

    use super::*;

    fn parts(method: Method, path: &str) -> Parts {
        let request = Request::builder().method(method).uri(path);
        request.body(()).unwrap().into_parts().0
    }

    #[test]
    fn only_the_route_itself_needs_no_credentials() {
        let is_change = |method, path| is_session_change("/o", &parts(method, path));
        assert!(is_change(Method::POST, "/o/api/v1/web/session"));
        assert!(is_change(Method::DELETE, "/o/api/v1/web/session?x=1"));
        assert!(!is_change(Method::GET, "/o/api/v1/web/session"));
        for path in [
            "/api/v1/web/session",
            "/o/api/v1/web/session/",
            "/o/api/v1/web/session/x",
            "/o/api/v1/web/%73ession",
            "/o//api/v1/web/session",
            "/o/api/v1/web/codes",
            "/o/x/api/v1/web/session",
        ] {
            assert!(!is_change(Method::POST, path), "{path}");
        }
    }

    #[tokio::test]
    async fn a_body_is_small_and_soon() {
        let request = session_change(parts(Method::POST, "/"), Body::from("{}")).await;
        assert!(
            request
                .unwrap()
                .extensions()
                .get::<SessionChange>()
                .is_some()
        );
        let status = |result: Result<Bytes, HttpProblem>| result.unwrap_err().0.status;
        let large = Body::from(vec![b' '; BODY_BYTES + 1]);
        assert_eq!(status(read_body(large, Duration::from_secs(60)).await), 413);
        let never = Body::from_stream(stream::pending::<Result<Bytes, axum::Error>>());
        assert_eq!(
            status(read_body(never, Duration::from_millis(1)).await),
            408
        );
    }
}
