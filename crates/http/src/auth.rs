//! Authentication: the principal and scopes of a bearer token.

use axum::http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue};
use axum::response::{IntoResponse as _, Response};
use ostler_interface::http::{HttpIdentity, HttpProblem};
use ostler_interface::project_access::ProjectAccess;
use ostler_model::ErrorCode;

use crate::options::HttpAccess;
use crate::tokens::{TokenEnd, TokenMatch, TokenScope, TokenStore, TokenValidity};
use crate::web::PageCredentials;

/// Why a request is not authenticated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AuthError {
    /// It has no token.
    MissingToken,
    /// It has several values of `Authorization`.
    RepeatedHeader,
    /// It has the cookie of a page, and no page key.
    MissingPageKey,
    /// It has the key of a page, and no cookie.
    MissingCookie,
    /// Its token is invalid.
    InvalidToken,
    /// Its token has expired.
    ExpiredToken,
    /// The tokens cannot be read; the log contains the cause.
    StoreUnreadable,
}

/// Who makes a request.
#[derive(Debug)]
pub(crate) struct AuthenticatedClient {
    pub(crate) identity: HttpIdentity,
    /// How long its token is valid; none without tokens.
    pub(crate) validity: Option<TokenValidity>,
}

/// What a request has to show who sends it.
#[derive(Debug)]
pub(crate) enum RequestCredentials<'a> {
    /// `Authorization`; it alone counts where it is given.
    Bearer(Result<&'a str, AuthError>),
    /// The halves of a page's token, or nothing.
    Page(PageCredentials),
}

impl<'a> RequestCredentials<'a> {
    pub(crate) fn of(parts: &'a Parts) -> Self {
        if parts.headers.contains_key(AUTHORIZATION) {
            return Self::Bearer(bearer(&parts.headers));
        }
        Self::Page(PageCredentials::of(parts))
    }

    /// Whether a page sent them.
    pub(crate) const fn are_of_page(&self) -> bool {
        match self {
            Self::Bearer(_) | Self::Page(PageCredentials::Absent) => false,
            Self::Page(_) => true,
        }
    }

    /// The token in `store`.
    fn find(&self, store: &TokenStore) -> Result<TokenMatch, AuthError> {
        let secrets = match self {
            Self::Bearer(secret) => return find(store, (*secret)?),
            Self::Page(PageCredentials::Absent) => return Err(AuthError::MissingToken),
            Self::Page(PageCredentials::WithoutPageKey) => return Err(AuthError::MissingPageKey),
            Self::Page(PageCredentials::WithoutCookie) => return Err(AuthError::MissingCookie),
            Self::Page(PageCredentials::Secrets(secrets)) => secrets,
        };
        let mut best = TokenMatch::Unknown;
        for secret in secrets {
            match find(store, secret)? {
                valid @ TokenMatch::Valid(_) => return Ok(valid),
                TokenMatch::Expired => best = TokenMatch::Expired,
                TokenMatch::Unknown => {}
            }
        }
        Ok(best)
    }
}

fn find(store: &TokenStore, secret: &str) -> Result<TokenMatch, AuthError> {
    store.find(secret).map_err(|error| {
        tracing::error!(%error, "nobody is let in over HTTP");
        AuthError::StoreUnreadable
    })
}

impl HttpAccess {
    /// The client with these credentials.
    pub(crate) fn identify(
        &self,
        credentials: &RequestCredentials<'_>,
    ) -> Result<AuthenticatedClient, AuthError> {
        let store = match self {
            Self::Open(principal) => {
                let identity = HttpIdentity {
                    principal: principal.clone(),
                    token: None,
                    sees_all: false,
                    may_stop: false,
                    project: None,
                    access: ProjectAccess::default(),
                };
                return Ok(AuthenticatedClient {
                    identity,
                    validity: None,
                });
            }
            Self::Tokens(store) => store,
        };
        let token = match credentials.find(store)? {
            TokenMatch::Valid(token) => token,
            TokenMatch::Expired => return Err(AuthError::ExpiredToken),
            TokenMatch::Unknown => return Err(AuthError::InvalidToken),
        };
        let identity = HttpIdentity {
            principal: token.principal.clone(),
            token: Some(token.name.clone()),
            sees_all: token.scopes.contains(&TokenScope::SessionsAll),
            may_stop: token.scopes.contains(&TokenScope::DaemonStop),
            project: None,
            access: token.project_access(),
        };
        Ok(AuthenticatedClient {
            identity,
            validity: Some(store.validity(token)),
        })
    }

    /// Follows changes of the tokens, where there are any; see [`TokenStore::watch_changes`].
    ///
    /// [`TokenStore::watch_changes`]: crate::tokens::TokenStore::watch_changes
    pub async fn watch_changes(&self) {
        match self {
            Self::Open(_) => {}
            Self::Tokens(store) => store.watch_changes().await,
        }
    }
}

impl From<TokenEnd> for AuthError {
    fn from(end: TokenEnd) -> Self {
        match end {
            TokenEnd::Revoked => Self::InvalidToken,
            TokenEnd::Expired => Self::ExpiredToken,
        }
    }
}

/// The only bearer token of a request.
fn bearer(headers: &HeaderMap) -> Result<&str, AuthError> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let first = values.next().ok_or(AuthError::MissingToken)?;
    if values.next().is_some() {
        return Err(AuthError::RepeatedHeader);
    }
    let text = first.to_str().map_err(|_| AuthError::InvalidToken)?;
    let (scheme, secret) = text.split_once(' ').ok_or(AuthError::MissingToken)?;
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Err(AuthError::MissingToken);
    }
    Ok(secret.trim())
}

impl AuthError {
    const fn message(self) -> &'static str {
        match self {
            Self::MissingToken => "a bearer token is needed",
            Self::RepeatedHeader => "Authorization is given more than once",
            Self::MissingPageKey => {
                "the cookie of a page needs its page key, in the header Ostler-Page-Key"
            }
            Self::MissingCookie => "the page key needs its cookie, which signing in sets",
            Self::InvalidToken => "the bearer token is not known here; it may have been revoked",
            Self::ExpiredToken => "the bearer token has expired",
            Self::StoreUnreadable => "tokens cannot be read; the daemon's log says why",
        }
    }

    /// The value of `WWW-Authenticate`; none where no other token would do.
    const fn challenge(self) -> Option<&'static str> {
        match self {
            Self::MissingToken
            | Self::RepeatedHeader
            | Self::MissingPageKey
            | Self::MissingCookie => Some(r#"Bearer realm="ostler""#),
            Self::InvalidToken => Some(r#"Bearer realm="ostler", error="invalid_token""#),
            Self::ExpiredToken => {
                Some(r#"Bearer realm="ostler", error="invalid_token", error_description="expired""#)
            }
            Self::StoreUnreadable => None,
        }
    }

    /// The problem document.
    pub(crate) fn problem(self) -> HttpProblem {
        if self == Self::StoreUnreadable {
            return HttpProblem::new(ErrorCode::Storage, self.message(), None);
        }
        HttpProblem::new(ErrorCode::Permission, self.message(), None)
            .with_status(401)
            .with_hint(
                "make one with `ostler token new NAME` on the daemon's machine and send it as \
                 'Authorization: Bearer TOKEN'",
            )
    }

    /// The HTTP response.
    pub(crate) fn response(self) -> Response {
        let mut response = self.problem().into_response();
        if let Some(challenge) = self.challenge() {
            let challenge = HeaderValue::from_static(challenge);
            response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
        }
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
        let twice = given(&["Bearer a", "Bearer b"]);
        assert_eq!(bearer(&twice), Err(AuthError::RepeatedHeader));
        for none in [&[][..], &["Basic abc"], &["abc"]] {
            assert_eq!(
                bearer(&given(none)),
                Err(AuthError::MissingToken),
                "{none:?}"
            );
        }
    }
}
