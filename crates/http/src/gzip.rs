//! Content that the program has as gzip (RFC 1952): who accepts it, and how others get it.

use axum::http::HeaderMap;
use axum::http::header::ACCEPT_ENCODING;
use miniz_oxide::inflate::{DecompressError, decompress_to_vec_with_limit};

/// The lengths of what stands before and after the deflated bytes (RFC 1952, section 2.3), where a
/// build script made it.
const HEADER_BYTES: usize = 10;
const TRAILER_BYTES: usize = 8;
/// More than any content of the program has.
const CONTENT_BYTES: usize = 16 * 1024 * 1024;

/// The content of `gzip`, as a build script made it.
///
/// # Errors
/// When it is damaged.
pub(crate) fn decompress(gzip: &[u8]) -> Result<Vec<u8>, DecompressError> {
    let end = gzip.len().saturating_sub(TRAILER_BYTES);
    let deflated = gzip.get(HEADER_BYTES..end).unwrap_or_default();
    decompress_to_vec_with_limit(deflated, CONTENT_BYTES)
}

/// Whether `Accept-Encoding` names gzip, and not with the weight 0 (RFC 9110, section 12.5.3).
pub(crate) fn is_accepted(headers: &HeaderMap) -> bool {
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
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn gzip_is_for_those_who_accept_it() {
        let accepts = |value: &'static str| {
            let header = (ACCEPT_ENCODING, HeaderValue::from_static(value));
            is_accepted(&HeaderMap::from_iter([header]))
        };
        for value in ["gzip", "br, GZIP", "deflate;q=1, gzip ; q=0.5"] {
            assert!(accepts(value), "{value}");
        }
        for value in ["", "identity", "gzip;q=0", "gzip; q=0.000", "br, xgzip"] {
            assert!(!accepts(value), "{value}");
        }
        assert!(!is_accepted(&HeaderMap::new()));
    }

    #[test]
    fn what_is_no_gzip_is_an_error() {
        for damaged in [&b""[..], b"short", &[0xff; 64]] {
            assert!(decompress(damaged).is_err(), "{damaged:?}");
        }
    }
}
