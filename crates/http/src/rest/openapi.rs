//! The OpenAPI document of the routes, which `cargo xtask openapi` writes. The binary has it
//! compressed (`build.rs`).

use axum::http::header::{CONTENT_ENCODING, CONTENT_TYPE, VARY};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use miniz_oxide::inflate::DecompressError;
use ostler_interface::http::HttpProblem;
use ostler_model::ErrorCode;

use super::caller::RequestCaller;
use super::query::QueryString;
use super::response::RestResult;
use crate::gzip;

/// The document as gzip.
const COMPRESSED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/openapi.json.gz"));

/// `GET /api/openapi.json`: this document. Compressed for those who accept gzip.
pub(super) async fn document(
    _caller: RequestCaller,
    headers: HeaderMap,
    query_string: QueryString,
) -> RestResult<Response> {
    query_string.check(&[])?;
    let mut response = if gzip::is_accepted(&headers) {
        let encoding = [(CONTENT_ENCODING, "gzip")];
        (encoding, Bytes::from_static(COMPRESSED)).into_response()
    } else {
        gzip::decompress(COMPRESSED)
            .map_err(damaged)?
            .into_response()
    };
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(VARY, HeaderValue::from_static("accept-encoding"));
    Ok(response)
}

fn damaged(error: DecompressError) -> HttpProblem {
    let message = format!("the document cannot be decompressed: {error}");
    HttpProblem::new(ErrorCode::Internal, message, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_is_decompressed_whole() {
        let document = gzip::decompress(COMPRESSED).expect("the document");
        let document: serde_json::Value = serde_json::from_slice(&document).expect("JSON");
        assert_eq!(document["openapi"], "3.1.0");
    }
}
