//! Signing in and out of the page, and the links that sign in.

use std::fmt;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ostler_model::owner::Principal;
use ostler_model::{Timestamp, duration};
use parking_lot::Mutex;
use thiserror::Error;

use super::codes::{CODES, CodeTable, CodesFull, LINK_MINUTES};
use super::credentials::TokenHalves;
use super::sign_in_limit::{FAILURES, FailureTable, WINDOW};
use crate::options::HttpAccess;
use crate::random_text::random_text;
use crate::tokens::{AccessToken, TokenError, TokenMatch, TokenStore};

/// Random bytes of a code.
const CODE_BYTES: usize = 16;
/// The longest time a browser keeps the cookie, in seconds: 30 days.
const COOKIE_SECONDS: u64 = 30 * 24 * 60 * 60;

/// Sign-ins of pages at one address. Cheap to clone.
#[derive(Debug, Clone)]
pub struct WebAccess(Arc<WebAccessInner>);

#[derive(Debug)]
struct WebAccessInner {
    /// The address of the page, without a `/` at its end.
    url: String,
    /// The prefix of every path, with which the address ends.
    url_prefix: String,
    access: HttpAccess,
    codes: Mutex<CodeTable>,
    failures: Mutex<FailureTable>,
}

/// A link that opens the page.
#[derive(Clone, PartialEq, Eq)]
pub struct WebLink {
    /// Its address. `Debug` does not show it.
    pub url: String,
    /// Until when it signs in, once; none where no token is needed.
    pub expires: Option<Timestamp>,
}

/// Why a link cannot be made.
#[derive(Debug, Error)]
pub enum WebLinkError {
    /// There are too many that were not used.
    #[error("there are {CODES} links that were not used, which is the most there can be")]
    Full {
        /// Until one of them ends.
        wait: Duration,
    },
    /// The kernel gave no random bytes.
    #[error("a code cannot be made: {0}")]
    Random(#[from] io::Error),
}

/// What a person signs in with. `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum SignInSecret {
    /// A token.
    Token(String),
    /// The code of a link.
    Code(String),
}

/// The end of a sign-in that did not fail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SignInOutcome {
    /// The page has credentials of its own.
    Page(Box<PageSession>),
    /// No token is needed: every request is this principal's.
    NotNeeded(Principal),
}

/// A page that was signed in. `Debug` does not show its secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PageSession {
    pub(crate) halves: TokenHalves,
    pub(crate) token: AccessToken,
    /// How long the browser keeps the cookie, in seconds.
    pub(crate) cookie_seconds: u64,
}

/// Why a sign-in failed.
#[derive(Debug, Error)]
pub(crate) enum SignInError {
    #[error("the token is not known here; it may have been revoked")]
    UnknownToken,
    #[error("the token has expired")]
    ExpiredToken,
    #[error(
        "the code is not known here: it was used, is older than {LINK_MINUTES} minutes, or of a \
         daemon that ended"
    )]
    UnknownCode,
    #[error(transparent)]
    TooMany(#[from] TooManyFailures),
    #[error(transparent)]
    Tokens(#[from] TokenError),
}

/// Too many sign-ins of an address failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error(
    "too many sign-ins failed; allowed: {FAILURES} within {} s",
    WINDOW.as_secs()
)]
pub(crate) struct TooManyFailures {
    /// How long to wait.
    pub(crate) wait: Duration,
}

impl fmt::Debug for WebLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebLink")
            .field("expires", &self.expires)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for SignInSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Token(_) => "Token(…)",
            Self::Code(_) => "Code(…)",
        })
    }
}

impl WebAccess {
    /// Sign-ins at this address, which ends with `url_prefix`, of those who have access.
    #[must_use]
    pub fn new(url: String, url_prefix: String, access: HttpAccess) -> Self {
        Self(Arc::new(WebAccessInner {
            url,
            url_prefix,
            access,
            codes: Mutex::default(),
            failures: Mutex::default(),
        }))
    }

    /// A link to the page. Where a token is needed, it signs in a browser as `principal`, once,
    /// within ten minutes.
    ///
    /// # Errors
    /// When there are too many links already.
    pub fn open_link(&self, principal: Principal) -> Result<WebLink, WebLinkError> {
        let url = &self.0.url;
        if let HttpAccess::Open(_) = self.0.access {
            return Ok(WebLink {
                url: format!("{url}/"),
                expires: None,
            });
        }
        let code = random_text::<CODE_BYTES>()?;
        let mut codes = self.0.codes.lock();
        let inserted = codes.insert(&code, principal, Timestamp::now());
        let expires = inserted.map_err(|CodesFull(wait)| WebLinkError::Full { wait })?;
        Ok(WebLink {
            url: format!("{url}/#code={code}"),
            expires: Some(expires),
        })
    }

    /// The prefix of every path.
    pub(crate) fn url_prefix(&self) -> &str {
        &self.0.url_prefix
    }

    /// Signs a page in; `address` is where it is, none on this machine's socket. Reads files, and
    /// writes one for a code.
    ///
    /// # Errors
    /// When the secret is not valid; [`SignInError::TooMany`] where too many of this address were not.
    pub(crate) fn sign_in(
        &self,
        secret: &SignInSecret,
        address: Option<IpAddr>,
    ) -> Result<SignInOutcome, SignInError> {
        let tokens = match &self.0.access {
            HttpAccess::Open(principal) => return Ok(SignInOutcome::NotNeeded(principal.clone())),
            HttpAccess::Tokens(tokens) => tokens,
        };
        let result = match secret {
            SignInSecret::Token(secret) => by_token(tokens, secret),
            SignInSecret::Code(code) => self.by_code(tokens, code),
        };
        let is_wrong = matches!(
            &result,
            Err(SignInError::UnknownToken | SignInError::ExpiredToken | SignInError::UnknownCode)
        );
        // A valid secret passes however many failed before: others at the address would keep people out
        // otherwise, and secrets of 128 bits and more cannot be guessed.
        if let Some(address) = address.filter(|_| is_wrong) {
            let counted = self.0.failures.lock().count(address, Instant::now());
            counted.map_err(|wait| TooManyFailures { wait })?;
        }
        result.map(|session| SignInOutcome::Page(Box::new(session)))
    }

    fn by_code(&self, tokens: &TokenStore, code: &str) -> Result<PageSession, SignInError> {
        let now = Timestamp::now();
        let grant = self.0.codes.lock().take(code, now);
        let grant = grant.ok_or(SignInError::UnknownCode)?;
        match tokens.create_for_browser(grant.principal.clone(), now) {
            Ok((secret, token)) => page_session(secret.reveal(), token),
            Err(error) => {
                self.0.codes.lock().put_back(grant);
                Err(error.into())
            }
        }
    }

    /// Signs out: the token is revoked where a link made it, since nobody else has it.
    ///
    /// # Errors
    /// When the tokens cannot be read or written.
    pub(crate) fn sign_out(&self, secrets: &[String]) -> Result<(), TokenError> {
        let HttpAccess::Tokens(tokens) = &self.0.access else {
            return Ok(());
        };
        for secret in secrets {
            let TokenMatch::Valid(token) = tokens.find(secret)? else {
                continue;
            };
            if token.is_for_browser() {
                match tokens.revoke(&token.name) {
                    // Another page of the browser signed out at the same time.
                    Ok(()) | Err(TokenError::Unknown(_)) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }
}

fn by_token(tokens: &TokenStore, secret: &str) -> Result<PageSession, SignInError> {
    match tokens.find(secret)? {
        TokenMatch::Valid(token) => page_session(secret, token),
        TokenMatch::Expired => Err(SignInError::ExpiredToken),
        TokenMatch::Unknown => Err(SignInError::UnknownToken),
    }
}

fn page_session(secret: &str, token: AccessToken) -> Result<PageSession, SignInError> {
    let halves = TokenHalves::of(secret).ok_or(SignInError::UnknownToken)?;
    let rest = |expires| duration::between(Timestamp::now(), expires).as_secs();
    let cookie_seconds = token.expires.map_or(COOKIE_SECONDS, rest);
    Ok(PageSession {
        halves,
        token,
        cookie_seconds: cookie_seconds.min(COOKIE_SECONDS),
    })
}
