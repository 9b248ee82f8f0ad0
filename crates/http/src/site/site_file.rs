//! A file of the web interface, and the response with it.

use axum::http::header::{
    CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, IF_NONE_MATCH,
    REFERRER_POLICY, VARY,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use ostler_interface::http::HttpProblem;
use ostler_model::{ErrorCode, lower_hex};
use sha2::{Digest as _, Sha256};

use super::paths::is_immutable;
use crate::gzip;

/// Nothing but the page's own files, and requests to where it comes from. xterm.js adds a style
/// element for the sizes of its cells; no script stands in a page.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; \
     img-src 'self' data:; font-src 'self'; connect-src 'self'; manifest-src 'self'; \
     base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
/// Headers of every file, besides those of its caching.
const HEADERS: [(HeaderName, &str); 4] = [
    (CONTENT_SECURITY_POLICY, POLICY),
    (REFERRER_POLICY, "no-referrer"),
    (
        HeaderName::from_static("cross-origin-opener-policy"),
        "same-origin",
    ),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        "same-origin",
    ),
];
/// How many hexadecimal digits of the hash an entity tag has.
const TAG_CHARS: usize = 32;
/// `(end of the name, content type)`.
const TYPES: &[(&str, &str)] = &[
    ("html", "text/html; charset=utf-8"),
    ("js", "text/javascript; charset=utf-8"),
    ("css", "text/css; charset=utf-8"),
    ("json", "application/json"),
    ("map", "application/json"),
    ("webmanifest", "application/manifest+json"),
    ("svg", "image/svg+xml"),
    ("png", "image/png"),
    ("ico", "image/vnd.microsoft.icon"),
    ("woff2", "font/woff2"),
    ("txt", "text/plain; charset=utf-8"),
];

/// A file and how it is sent.
#[derive(Debug, Clone)]
pub(super) struct SiteFile {
    content: FileContent,
    /// A weak one: the content is the same, compressed or not.
    entity_tag: String,
    content_type: &'static str,
    /// Whether it never changes, so that nobody asks for it again.
    is_immutable: bool,
}

#[derive(Debug, Clone)]
enum FileContent {
    Plain(Bytes),
    Gzip(&'static [u8]),
}

impl SiteFile {
    /// A file that the program has, with the hexadecimal digits of its hash.
    pub(super) fn embedded(path: &str, gzip: &'static [u8], sha256: &str) -> Self {
        Self {
            content: FileContent::Gzip(gzip),
            entity_tag: entity_tag(sha256),
            content_type: content_type(path),
            is_immutable: is_immutable(path),
        }
    }

    /// A file that may change at any time.
    pub(super) fn plain(path: &str, content: Vec<u8>) -> Self {
        Self {
            entity_tag: entity_tag(&lower_hex(&Sha256::digest(&content))),
            content: FileContent::Plain(content.into()),
            content_type: content_type(path),
            is_immutable: false,
        }
    }

    /// The response to a request with these headers.
    pub(super) fn response(&self, request: &HeaderMap) -> Response {
        let mut response = if is_cached(request, &self.entity_tag) {
            StatusCode::NOT_MODIFIED.into_response()
        } else {
            match self.body(request) {
                Ok(response) => response,
                Err(problem) => return problem.into_response(),
            }
        };
        let caching = if self.is_immutable {
            "public, max-age=31536000, immutable"
        } else {
            "no-cache"
        };
        let own = [
            (CACHE_CONTROL, caching),
            (ETAG, self.entity_tag.as_str()),
            (CONTENT_TYPE, self.content_type),
        ];
        let headers = response.headers_mut();
        for (name, value) in HEADERS.into_iter().chain(own) {
            if let Ok(value) = HeaderValue::from_str(value) {
                headers.insert(name, value);
            }
        }
        if let FileContent::Gzip(_) = self.content {
            headers.insert(VARY, HeaderValue::from_static("accept-encoding"));
        }
        response
    }

    fn body(&self, request: &HeaderMap) -> Result<Response, HttpProblem> {
        Ok(match &self.content {
            FileContent::Plain(content) => content.clone().into_response(),
            FileContent::Gzip(content) if gzip::is_accepted(request) => {
                let encoding = [(CONTENT_ENCODING, "gzip")];
                (encoding, Bytes::from_static(content)).into_response()
            }
            FileContent::Gzip(content) => match gzip::decompress(content) {
                Ok(content) => content.into_response(),
                Err(error) => {
                    let message = format!("the file cannot be decompressed: {error}");
                    return Err(HttpProblem::new(ErrorCode::Internal, message, None));
                }
            },
        })
    }
}

fn entity_tag(sha256: &str) -> String {
    let digits = sha256.get(..TAG_CHARS).unwrap_or(sha256);
    format!("W/\"{digits}\"")
}

fn content_type(path: &str) -> &'static str {
    let end = path.rsplit_once('.').map_or("", |(_, end)| end);
    let known = TYPES.iter().find(|(known, _)| *known == end);
    known.map_or("application/octet-stream", |(_, name)| name)
}

/// Whether the client has the content with this tag (RFC 9110, section 13.1.2).
fn is_cached(request: &HeaderMap, entity_tag: &str) -> bool {
    let values = request.get_all(IF_NONE_MATCH).iter();
    let values = values.filter_map(|value| value.to_str().ok());
    let mut tags = values.flat_map(|value| value.split(',')).map(str::trim);
    let opaque = |tag: &str| tag.strip_prefix("W/").unwrap_or(tag).to_owned();
    tags.any(|tag| tag == "*" || opaque(tag) == opaque(entity_tag))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_that_has_it_gets_no_copy() {
        let cached = |value: &'static str| {
            let header = (IF_NONE_MATCH, HeaderValue::from_static(value));
            is_cached(&HeaderMap::from_iter([header]), "W/\"ab\"")
        };
        for value in ["W/\"ab\"", "\"ab\"", "*", "\"x\", W/\"ab\""] {
            assert!(cached(value), "{value}");
        }
        for value in ["", "ab", "\"x\"", "W/\"abc\""] {
            assert!(!cached(value), "{value}");
        }
        assert!(!is_cached(&HeaderMap::new(), "W/\"ab\""));
    }

    #[test]
    fn what_has_no_known_type_is_not_shown() {
        assert_eq!(
            content_type("assets/a.b.js"),
            "text/javascript; charset=utf-8"
        );
        for path in ["assets/LICENSE", "x.exe", "x.", "html"] {
            assert_eq!(content_type(path), "application/octet-stream", "{path}");
        }
    }

    #[test]
    fn a_damaged_file_is_an_error_and_not_half_a_file() {
        let file = SiteFile::embedded("assets/a.js", b"no gzip", "ab");
        let status = file.response(&HeaderMap::new()).status();
        assert_eq!(status, StatusCode::INTERNAL_SERVER_ERROR);
    }
}
