//! Authentication: the principal and scopes of a bearer token.

use axum::http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::{IntoResponse as _, Response};
use ostler_model::owner::{Owner, Principal};
use ostler_model::{Caller, ErrorCode, Scope, SessionName};

use super::options::HttpAccess;
use super::tokens::TokenScope;
use crate::problem::HttpProblem;

/// The session of requests that name none and have none of their own.
pub(super) const SHARED_SESSION: &str = "http";

/// The authenticated identity of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HttpIdentity {
    pub(super) principal: Principal,
    pub(super) scopes: Vec<TokenScope>,
    /// The project of what HTTP clients start; none means the project of each command's directory.
    pub(super) project: Option<String>,
}

/// Why a request is not authenticated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AuthError {
    /// It has no token.
    MissingToken,
    /// Its token is invalid.
    InvalidToken,
    /// The tokens cannot be read; the log says why.
    StoreUnreadable,
}

impl HttpIdentity {
    /// This identity as the caller of a session of its own, which sees no other.
    pub(super) fn caller(&self, session: SessionName) -> Caller {
        Caller {
            owner: self.owner(Some(session)),
            scope: Scope::Session,
        }
    }

    /// This identity as the caller of the shared session. With `sessions:all` it sees the others
    /// too.
    pub(super) fn shared_caller(&self) -> Caller {
        let mut caller = self.caller(SessionName(SHARED_SESSION.to_owned()));
        if self.sees_all() {
            caller.scope = Scope::Principal;
        }
        caller
    }

    /// The caller of REST requests that name no session.
    pub(super) fn rest_caller(&self) -> Caller {
        if self.sees_all() {
            return Caller {
                owner: self.owner(None),
                scope: Scope::Principal,
            };
        }
        self.caller(SessionName(SHARED_SESSION.to_owned()))
    }

    /// Whether it may shut the daemon down.
    pub(super) fn may_stop(&self) -> bool {
        self.scopes.contains(&TokenScope::DaemonStop)
    }

    fn sees_all(&self) -> bool {
        self.scopes.contains(&TokenScope::SessionsAll)
    }

    fn owner(&self, session: Option<SessionName>) -> Owner {
        Owner {
            principal: self.principal.clone(),
            project: self.project.clone(),
            session,
            task: None,
            channel: ostler_model::RequestChannel::Network,
        }
    }
}

impl HttpAccess {
    /// The identity behind these headers.
    pub(super) fn identify(&self, headers: &HeaderMap) -> Result<HttpIdentity, AuthError> {
        let store = match self {
            Self::Open(principal) => {
                return Ok(HttpIdentity {
                    principal: principal.clone(),
                    scopes: Vec::new(),
                    project: None,
                });
            }
            Self::Tokens(store) => store,
        };
        let secret = bearer(headers)?;
        let token = store.find(secret).map_err(|error| {
            tracing::error!(%error, "nobody is let in over HTTP");
            AuthError::StoreUnreadable
        })?;
        let token = token.ok_or(AuthError::InvalidToken)?;
        Ok(HttpIdentity {
            principal: token.principal,
            scopes: token.scopes,
            project: None,
        })
    }
}

/// The only bearer token of a request.
fn bearer(headers: &HeaderMap) -> Result<&str, AuthError> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let (Some(first), None) = (values.next(), values.next()) else {
        return Err(AuthError::MissingToken);
    };
    let text = first.to_str().map_err(|_| AuthError::InvalidToken)?;
    let (scheme, secret) = text.split_once(' ').ok_or(AuthError::MissingToken)?;
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Err(AuthError::MissingToken);
    }
    Ok(secret.trim())
}

impl AuthError {
    /// The HTTP response.
    pub(super) fn response(self) -> Response {
        let (message, challenge) = match self {
            Self::MissingToken => ("a bearer token is needed", r#"Bearer realm="ostler""#),
            Self::InvalidToken => (
                "the bearer token is not known here; it may have been revoked",
                r#"Bearer realm="ostler", error="invalid_token""#,
            ),
            Self::StoreUnreadable => {
                let message = "tokens cannot be read; the daemon's log says why";
                return HttpProblem::new(ErrorCode::Storage, message, None).into_response();
            }
        };
        let problem = HttpProblem::new(ErrorCode::Permission, message, None)
            .with_status(401)
            .with_hint(
                "make one with `ostler token new NAME` on the daemon's machine and send it as \
                 'Authorization: Bearer TOKEN'",
            );
        let mut response = problem.into_response();
        let challenge = HeaderValue::from_static(challenge);
        response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(values: &[&'static str]) -> HeaderMap {
        let values = values.iter().map(|value| HeaderValue::from_static(value));
        values.map(|value| (AUTHORIZATION, value)).collect()
    }

    #[test]
    fn a_bearer_token_stands_alone_after_its_scheme() {
        assert_eq!(bearer(&given(&["Bearer abc"])), Ok("abc"));
        assert_eq!(bearer(&given(&["bearer  abc "])), Ok("abc"));
        for none in [&[][..], &["Basic abc"], &["abc"], &["Bearer a", "Bearer b"]] {
            assert_eq!(
                bearer(&given(none)),
                Err(AuthError::MissingToken),
                "{none:?}"
            );
        }
    }

    #[test]
    fn a_scope_widens_what_is_seen() {
        let mut identity = HttpIdentity {
            principal: Principal::unix(1),
            scopes: Vec::new(),
            project: None,
        };
        let narrow = identity.rest_caller();
        assert_eq!(narrow.scope, Scope::Session);
        assert_eq!(narrow.owner.channel, ostler_model::RequestChannel::Network);
        assert_eq!(narrow.owner.session, Some(SessionName("http".to_owned())));
        assert!(!identity.may_stop());
        identity.scopes = super::super::tokens::SCOPES.to_vec();
        assert_eq!(identity.rest_caller().owner.session, None);
        let named = identity.caller(SessionName("a".to_owned()));
        assert_eq!(named.scope, Scope::Session);
        assert_eq!(identity.shared_caller().scope, Scope::Principal);
        assert!(identity.may_stop());
    }
}
