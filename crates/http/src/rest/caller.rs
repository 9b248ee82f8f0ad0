//! The caller of a request: the listener's identity, narrowed by the session header.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use ostler_interface::http::{HttpProblem, SESSION_HEADER, parse_session_name};
use ostler_model::{Caller, ErrorCode, Scope};

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
