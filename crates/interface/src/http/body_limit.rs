//! The largest request body.

use super::HttpProblem;

/// The largest body of a request over TCP, in bytes.
pub const BODY_BYTES: usize = 4 * 1024 * 1024;

/// The problem for a body that is too large.
#[must_use]
pub fn too_large() -> HttpProblem {
    HttpProblem::value(format!(
        "the body is too large; allowed: {BODY_BYTES} bytes"
    ))
    .with_status(413)
}
