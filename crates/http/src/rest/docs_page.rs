//! The page that shows the OpenAPI document: one file of our own, which loads nothing but the
//! document.
//!
//! Over TCP it needs no token, as the only route: it is a constant that holds nothing of anybody,
//! a browser cannot send a token when it opens an address, and the page is where a person enters
//! one. The document that it then reads needs a token as all routes do.

use std::sync::LazyLock;

use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, Method};
use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};

/// The route, from the prefix of all routes on.
const PATH: &str = "/api/docs";
const STYLE: &str = include_str!("docs_page/page.css");
const SCRIPT: &str = include_str!("docs_page/page.js");
const TEMPLATE: &str = include_str!("docs_page/page.html");

static PAGE: LazyLock<String> = LazyLock::new(|| {
    TEMPLATE
        .replace("{style}", STYLE)
        .replace("{script}", SCRIPT)
});

/// Nothing but its own style and script, and requests to where it comes from.
static POLICY: LazyLock<HeaderValue> = LazyLock::new(|| {
    let hash = |text: &str| format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text)));
    let policy = format!(
        "default-src 'none'; style-src {}; script-src {}; connect-src 'self'; base-uri 'none'; \
         form-action 'none'; frame-ancestors 'none'",
        hash(STYLE),
        hash(SCRIPT)
    );
    HeaderValue::try_from(policy).unwrap_or(HeaderValue::from_static("default-src 'none'"))
});

/// Whether a request below this prefix is for the page.
pub(crate) fn is_requested(prefix: &str, parts: &Parts) -> bool {
    let is_read = [Method::GET, Method::HEAD].contains(&parts.method);
    is_read && parts.uri.path().strip_prefix(prefix) == Some(PATH)
}

/// `GET /api/docs`: a page that shows this document. It needs no token; the document does.
pub(crate) async fn page() -> Response {
    let headers: [(HeaderName, HeaderValue); 5] = [
        (
            CONTENT_TYPE,
            HeaderValue::from_static("text/html; charset=utf-8"),
        ),
        (CONTENT_SECURITY_POLICY, POLICY.clone()),
        (REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
        (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        (CACHE_CONTROL, HeaderValue::from_static("no-cache")),
    ];
    (headers, PAGE.as_str()).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_whole_and_loads_nothing_from_elsewhere() {
        assert!(PAGE.contains(STYLE) && PAGE.contains(SCRIPT));
        for other in ["://", "src=", "@import", "url(", "innerHTML", "eval("] {
            assert!(!PAGE.contains(other), "{other}");
        }
        let policy = POLICY.to_str().expect("a policy");
        assert_eq!(policy.matches("'sha256-").count(), 2, "{policy}");
        assert!(!policy.contains("unsafe"), "{policy}");
    }

    #[test]
    fn the_page_is_read_at_its_path_only() {
        let is_page = |method: Method, path: &str| {
            let request = axum::http::Request::builder().method(method).uri(path);
            let (parts, ()) = request.body(()).expect("a request").into_parts();
            (is_requested("", &parts), is_requested("/o", &parts))
        };
        assert_eq!(is_page(Method::GET, "/api/docs?x=1"), (true, false));
        assert_eq!(is_page(Method::HEAD, "/o/api/docs"), (false, true));
        for path in [
            "/api/docs/",
            "/api/docs/x",
            "/API/docs",
            "/api/v1/docs",
            "//api/docs",
        ] {
            assert_eq!(is_page(Method::GET, path), (false, false), "{path}");
        }
        assert_eq!(is_page(Method::POST, "/api/docs"), (false, false));
    }
}
