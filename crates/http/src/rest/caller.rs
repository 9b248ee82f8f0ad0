//! The caller of a request: the listener's identity, narrowed by the session header.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use axum::http::HeaderMap;
use axum::http::request::Parts;
use ostler_interface::http::{HttpIdentity, HttpProblem, requested_session};
use ostler_interface::project_access::ProjectAccess;
use ostler_model::{Caller, ErrorCode, Principal, Scope};

use super::response::RestResult;

/// The principal of the user that the daemon runs as.
pub(super) fn daemon_principal() -> Principal {
    Principal::unix(rustix::process::geteuid().as_raw())
}

/// Checks that the caller sees all that the daemon's user owns: what `subject` names is of all
/// principals, sessions and projects. `verb` says what is not done with a part of it.
pub(super) fn require_daemon_user(caller: &Caller, subject: &str, verb: &str) -> RestResult<()> {
    let message = if !caller.sees_all() {
        format!(
            "the {subject} is of all sessions and projects, and a part of it cannot be {verb}: a \
             token needs the scope sessions:all, and none that names a project"
        )
    } else if caller.owner.principal != daemon_principal() {
        format!(
            "the {subject} is of all principals, and a part of it cannot be {verb}: a token must \
             be of the daemon's user"
        )
    } else {
        return Ok(());
    };
    Err(HttpProblem::new(ErrorCode::Permission, message, None))
}

/// The caller of a request.
#[derive(Debug, Clone)]
pub(super) struct RequestCaller(pub(super) Caller);

/// What the caller of a request may do in projects.
#[derive(Debug, Clone)]
pub(super) struct RequestAccess(pub(super) ProjectAccess);

impl<S: Sync> FromRequestParts<S> for RequestAccess {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Infallible> {
        // Only the daemon's socket has callers without an identity of HTTP.
        let identity = parts.extensions.get::<HttpIdentity>();
        let access = identity.map(|identity| identity.access.clone());
        Ok(Self(access.unwrap_or_default()))
    }
}

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
        in_named_session(caller.clone(), &parts.headers).map(Self)
    }
}

/// The caller in the session that the headers name, where they name one.
///
/// # Errors
/// Where it is no name of a session.
pub(crate) fn in_named_session(mut caller: Caller, headers: &HeaderMap) -> RestResult<Caller> {
    if let Some(name) = requested_session(headers)? {
        caller.owner.session = Some(name);
        caller.scope = Scope::Session;
    }
    Ok(caller)
}
