//! The encoding of bodies: they are read as they are sent.

use axum::http::HeaderMap;
use axum::http::header::CONTENT_ENCODING;

/// The problem with the encoding of a body; none where it is not encoded.
#[must_use]
pub fn encoding_problem(headers: &HeaderMap) -> Option<String> {
    let encodings = headers.get_all(CONTENT_ENCODING).iter();
    let mut other =
        encodings.filter(|encoding| !encoding.as_bytes().eq_ignore_ascii_case(b"identity"));
    let encoding = String::from_utf8_lossy(other.next()?.as_bytes()).into_owned();
    Some(format!(
        "Content-Encoding '{encoding}' is not supported; allowed: a body without an encoding"
    ))
}
