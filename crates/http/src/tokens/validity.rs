//! How long a token is valid: what was opened with it ends when it is revoked or expires.

use std::sync::Arc;

use ostler_interface::http::AccessEnd;
use ostler_model::{Timestamp, duration};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::AccessToken;

/// Why a token is not valid any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TokenEnd {
    /// It was revoked, or is not as it was: what it allows may be less.
    Revoked,
    /// It has expired.
    Expired,
}

/// The token of a request, and the tokens there are, as they change.
#[derive(Debug, Clone)]
pub(crate) struct TokenValidity {
    token: AccessToken,
    tokens: watch::Receiver<Arc<[AccessToken]>>,
}

impl TokenEnd {
    /// As told to the client.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Revoked => "the token was revoked",
            Self::Expired => "the token has expired",
        }
    }
}

impl TokenValidity {
    pub(super) const fn new(
        token: AccessToken,
        tokens: watch::Receiver<Arc<[AccessToken]>>,
    ) -> Self {
        Self { token, tokens }
    }

    /// The token.
    pub(crate) const fn token(&self) -> &AccessToken {
        &self.token
    }

    /// The end of its validity, for other crates.
    pub(crate) fn access_end(&self) -> AccessEnd {
        let validity = self.clone();
        AccessEnd::new(move || {
            let ended = validity.clone().ended();
            async move {
                ended.await;
            }
        })
    }

    /// Waits until the token is not valid any more.
    pub(crate) async fn ended(mut self) -> TokenEnd {
        loop {
            let now = Timestamp::now();
            if let Some(end) = end_of(&self.token, &self.tokens.borrow_and_update(), now) {
                return end;
            }
            let expires = self.token.expires;
            let expiry = async {
                match expires {
                    Some(at) => sleep_until(Instant::now() + duration::between(now, at)).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = expiry => {}
                // Without their store, tokens only expire.
                Ok(()) = self.tokens.changed() => {}
            }
        }
    }
}

/// Whether `token` has ended, where these tokens exist.
fn end_of(token: &AccessToken, tokens: &[AccessToken], now: Timestamp) -> Option<TokenEnd> {
    if !tokens.contains(token) {
        return Some(TokenEnd::Revoked);
    }
    token.is_expired(now).then_some(TokenEnd::Expired)
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use jiff::SignedDuration;
    use ostler_model::owner::Principal;

    use super::*;
    use crate::tokens::TokenScope;

    fn token(name: &str, expires: Option<Timestamp>) -> AccessToken {
        AccessToken {
            name: name.to_owned(),
            sha256: name.repeat(8),
            principal: Principal::unix(7),
            scopes: vec![TokenScope::SessionsAll],
            created: Timestamp::UNIX_EPOCH,
            expires,
        }
    }

    #[test]
    fn a_token_ends_when_it_is_gone_changed_or_expired() {
        let now = Timestamp::now();
        let (one, other) = (token("one", Some(now)), token("other", None));
        let before = now - SignedDuration::from_nanos(1);
        let both = [other.clone(), one.clone()];
        assert_eq!(end_of(&one, &both, before), None);
        assert_eq!(end_of(&one, &both, now), Some(TokenEnd::Expired));
        assert_eq!(end_of(&other, &both, now), None);
        let revoked = Some(TokenEnd::Revoked);
        assert_eq!(end_of(&one, std::slice::from_ref(&other), now), revoked);
        assert_eq!(end_of(&one, &[], before), revoked);
        let mut narrowed = other.clone();
        narrowed.scopes.clear();
        assert_eq!(end_of(&other, &[narrowed], now), revoked);
        let mut made_again = other.clone();
        made_again.sha256 = "again".to_owned();
        assert_eq!(end_of(&other, &[made_again], now), revoked);
    }

    #[tokio::test]
    async fn the_end_is_noticed_while_waiting_for_it() {
        let (one, other) = (token("one", None), token("other", None));
        let tokens = watch::Sender::new(Arc::from([one.clone(), other.clone()]));
        let validity = TokenValidity::new(one, tokens.subscribe());
        let mut ended = Box::pin(validity.ended());
        assert!((&mut ended).now_or_never().is_none());
        tokens.send_replace(Arc::from([other]));
        assert_eq!(ended.await, TokenEnd::Revoked);
        let soon = token(
            "soon",
            Some(Timestamp::now() + SignedDuration::from_millis(20)),
        );
        tokens.send_replace(Arc::from([soon.clone()]));
        let validity = TokenValidity::new(soon, tokens.subscribe());
        drop(tokens);
        assert_eq!(validity.ended().await, TokenEnd::Expired);
    }
}
