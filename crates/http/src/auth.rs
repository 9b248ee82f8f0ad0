//! Authentication: the principal and scopes of a bearer token.

use axum::http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::{IntoResponse as _, Response};
use ostler_interface::http::{HttpIdentity, HttpProblem};
use ostler_model::ErrorCode;

use crate::options::HttpAccess;
use crate::tokens::{TokenMatch, TokenScope};

/// Why a request is not authenticated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AuthError {
    /// It has no token.
    MissingToken,
    /// Its token is invalid.
    InvalidToken,
    /// Its token has expired.
    ExpiredToken,
    /// The tokens cannot be read; the log contains the cause.
    StoreUnreadable,
}

impl HttpAccess {
    /// The identity behind these headers.
    pub(crate) fn identify(&self, headers: &HeaderMap) -> Result<HttpIdentity, AuthError> {
        let store = match self {
            Self::Open(principal) => {
                return Ok(HttpIdentity {
                    principal: principal.clone(),
                    sees_all: false,
                    may_stop: false,
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
        let token = match token {
            TokenMatch::Valid(token) => token,
            TokenMatch::Expired => return Err(AuthError::ExpiredToken),
            TokenMatch::Unknown => return Err(AuthError::InvalidToken),
        };
        Ok(HttpIdentity {
            principal: token.principal,
            sees_all: token.scopes.contains(&TokenScope::SessionsAll),
            may_stop: token.scopes.contains(&TokenScope::DaemonStop),
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
    pub(crate) fn response(self) -> Response {
        let (message, challenge) = match self {
            Self::MissingToken => ("a bearer token is needed", r#"Bearer realm="ostler""#),
            Self::InvalidToken => (
                "the bearer token is not known here; it may have been revoked",
                r#"Bearer realm="ostler", error="invalid_token""#,
            ),
            Self::ExpiredToken => (
                "the bearer token has expired",
                r#"Bearer realm="ostler", error="invalid_token", error_description="expired""#,
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
}
