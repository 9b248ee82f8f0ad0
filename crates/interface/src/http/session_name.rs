//! The session that a request names.

use axum::http::HeaderMap;
use ostler_model::SessionName;

use super::HttpProblem;

/// The header with the session of a request; without it all executions of the principal are
/// visible.
pub const SESSION_HEADER: &str = "ostler-session";
/// The longest name of a session, in bytes.
const SESSION_NAME_BYTES: usize = 128;

/// The session that the headers name, which may be none.
///
/// # Errors
/// When the header is there twice, or is not a valid name.
pub fn requested_session(headers: &HeaderMap) -> Result<Option<SessionName>, HttpProblem> {
    let mut values = headers.get_all(SESSION_HEADER).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(name), None) => parse_session_name(name.to_str().unwrap_or_default()).map(Some),
        (Some(_), Some(_)) => Err(HttpProblem::value(format!(
            "header '{SESSION_HEADER}' is there twice; allowed: once"
        ))),
    }
}

/// Parses the name of a session.
///
/// # Errors
/// When it is not a valid name.
pub fn parse_session_name(name: &str) -> Result<SessionName, HttpProblem> {
    let fits = (1..=SESSION_NAME_BYTES).contains(&name.len());
    if fits && name.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Ok(SessionName(name.to_owned()));
    }
    Err(HttpProblem::value(format!(
        "header '{SESSION_HEADER}' is no session name; allowed: 1 to {SESSION_NAME_BYTES} \
         printable ASCII characters without spaces"
    )))
}
