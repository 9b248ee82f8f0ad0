//! The caller of a request: the listener's identity, narrowed by the session header.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use ostler_model::{Caller, ErrorCode, Scope, SessionName};

use crate::problem::HttpProblem;

/// Names the session of a request; without it the whole principal's executions are seen.
pub const SESSION_HEADER: &str = "ostler-session";
/// The longest name of a session, in bytes.
const SESSION_NAME_BYTES: usize = 128;

/// The caller of a request.
#[derive(Debug, Clone)]
pub(super) struct RequestCaller(pub(super) Caller);

impl<S: Sync> FromRequestParts<S> for RequestCaller {
    type Rejection = HttpProblem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, HttpProblem> {
        let Some(caller) = parts.extensions.get::<Caller>() else {
            return Err(HttpProblem::new(
                ErrorCode::Permission,
                "the connection has no identity",
                None,
            ));
        };
        let mut caller = caller.clone();
        if let Some(name) = parts.headers.get(SESSION_HEADER) {
            let name = name.to_str().unwrap_or_default();
            caller.owner.session = Some(parse_session_name(name)?);
            caller.scope = Scope::Session;
        }
        Ok(Self(caller))
    }
}

/// Parses the name of a session.
///
/// # Errors
/// When it is none.
pub(crate) fn parse_session_name(name: &str) -> Result<SessionName, HttpProblem> {
    let fits = (1..=SESSION_NAME_BYTES).contains(&name.len());
    if fits && name.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Ok(SessionName(name.to_owned()));
    }
    Err(HttpProblem::value(format!(
        "header '{SESSION_HEADER}' is no session name; allowed: 1 to {SESSION_NAME_BYTES} \
         printable ASCII characters"
    )))
}
