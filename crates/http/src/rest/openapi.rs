//! The OpenAPI document of the routes, which `cargo xtask openapi` writes. The binary has it
//! compressed (`build.rs`).

use axum::http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, VARY};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use miniz_oxide::inflate::decompress_to_vec_with_limit;
use ostler_interface::http::HttpProblem;
use ostler_model::ErrorCode;

use super::caller::RequestCaller;
use super::query::QueryString;
use super::response::RestResult;

/// The document as gzip.
const COMPRESSED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/openapi.json.gz"));
/// The lengths of what stands before and after the deflated bytes (RFC 1952, section 2.3).
const HEADER_BYTES: usize = 10;
const TRAILER_BYTES: usize = 8;
/// More than the document will have.
const DOCUMENT_LIMIT_BYTES: usize = 16 * 1024 * 1024;

/// `GET /api/openapi.json`: this document. Compressed for those who accept gzip.
pub(super) async fn document(
    _caller: RequestCaller,
    headers: HeaderMap,
    query_string: QueryString,
) -> RestResult<Response> {
    query_string.check(&[])?;
    let mut response = if accepts_gzip(&headers) {
        let encoding = [(CONTENT_ENCODING, "gzip")];
        (encoding, Bytes::from_static(COMPRESSED)).into_response()
    } else {
        uncompressed()?.into_response()
    };
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(VARY, HeaderValue::from_static("accept-encoding"));
    Ok(response)
}

fn uncompressed() -> RestResult<Vec<u8>> {
    let deflated = &COMPRESSED[HEADER_BYTES..COMPRESSED.len() - TRAILER_BYTES];
    decompress_to_vec_with_limit(deflated, DOCUMENT_LIMIT_BYTES).map_err(|error| {
        let message = format!("the document cannot be decompressed: {error}");
        HttpProblem::new(ErrorCode::Internal, message, None)
    })
}

/// Whether `Accept-Encoding` names gzip, and not with the weight 0 (RFC 9110, section 12.5.3).
fn accepts_gzip(headers: &HeaderMap) -> bool {
    let values = headers.get_all(ACCEPT_ENCODING).iter();
    let mut codings = values
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','));
    codings.any(|coding| {
        let mut parts = coding.split(';').map(str::trim);
        let is_gzip = parts
            .next()
            .is_some_and(|it| it.eq_ignore_ascii_case("gzip"));
        is_gzip && !parts.any(is_weight_zero)
    })
}

fn is_weight_zero(parameter: &str) -> bool {
    let weight = parameter.split_once('=');
    weight.is_some_and(|(name, value)| {
        name.trim().eq_ignore_ascii_case("q") && value.trim().parse() == Ok(0.0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_is_decompressed_whole() {
        let document = uncompressed().expect("the document");
        let document: serde_json::Value = serde_json::from_slice(&document).expect("JSON");
        assert_eq!(document["openapi"], "3.1.0");
    }

    #[test]
    fn gzip_is_for_those_who_accept_it() {
        let accepts = |value: &'static str| {
            let header = (ACCEPT_ENCODING, HeaderValue::from_static(value));
            accepts_gzip(&HeaderMap::from_iter([header]))
        };
        for value in ["gzip", "br, GZIP", "deflate;q=1, gzip ; q=0.5"] {
            assert!(accepts(value), "{value}");
        }
        for value in ["", "identity", "gzip;q=0", "gzip; q=0.000", "br, xgzip"] {
            assert!(!accepts(value), "{value}");
        }
        assert!(!accepts_gzip(&HeaderMap::new()));
    }
}
