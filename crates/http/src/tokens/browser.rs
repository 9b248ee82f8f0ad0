//! Tokens that links make for browsers: each is known to one browser alone, and by its name.

use std::collections::HashSet;

use jiff::SignedDuration;
use ostler_model::owner::Principal;
use ostler_model::{Timestamp, lower_hex};

use super::token_file::StoredToken;
use super::{AccessToken, TOKENS, TokenError, TokenScope, TokenSecret, TokenStore, sha256};

/// What the names of these tokens begin with; digits follow.
const NAME_PREFIX: &str = "browser-";
/// How many digits.
const NAME_DIGITS: usize = 8;
/// One more than the largest number in a name.
const NAME_NUMBERS: u32 = 100_000_000;
/// How long such a token is valid, in days.
pub(crate) const BROWSER_DAYS: i64 = 30;

impl TokenStore {
    /// Creates a token of `principal` for one browser. Those that have expired are removed.
    ///
    /// # Errors
    /// When there are too many tokens, or the file cannot be written.
    pub(crate) fn create_for_browser(
        &self,
        principal: Principal,
        now: Timestamp,
    ) -> Result<(TokenSecret, AccessToken), TokenError> {
        let _lock = self.lock()?;
        let file = &self.0.plain;
        let (mut tokens, of_projects) = (file.read()?, self.0.of_projects.read()?);
        tokens.retain(|token| !token.has_expired_for_browser(now));
        if tokens.len() + of_projects.len() >= TOKENS {
            return Err(TokenError::Full);
        }
        let secret = TokenSecret::random().map_err(|error| file.io("made", error))?;
        let names: HashSet<&str> = tokens
            .iter()
            .chain(&of_projects)
            .map(StoredToken::name)
            .collect();
        let token = AccessToken {
            name: unused_name(&names),
            sha256: lower_hex(&sha256(secret.reveal())),
            principal,
            scopes: vec![TokenScope::SessionsAll],
            created: now,
            expires: Some(now + SignedDuration::from_hours(24 * BROWSER_DAYS)),
        };
        tokens.push(StoredToken::Known(token.clone()));
        file.write(&tokens)?;
        Ok((secret, token))
    }
}

impl StoredToken {
    /// Whether a link made it for a browser, and it has expired.
    fn has_expired_for_browser(&self, now: Timestamp) -> bool {
        match self {
            Self::Known(token) => token.is_for_browser() && token.is_expired(now),
            Self::Unknown(_) => false,
        }
    }
}

impl AccessToken {
    /// Whether a link made it for a browser.
    pub(crate) fn is_for_browser(&self) -> bool {
        let digits = self.name.strip_prefix(NAME_PREFIX);
        let is_number = |digits: &str| {
            digits.len() == NAME_DIGITS && digits.bytes().all(|byte| byte.is_ascii_digit())
        };
        self.expires.is_some() && digits.is_some_and(is_number)
    }
}

/// A name that is none of these; there are many more numbers than tokens.
fn unused_name(names: &HashSet<&str>) -> String {
    loop {
        let number = fastrand::u32(..NAME_NUMBERS);
        let name = format!("{NAME_PREFIX}{number:0NAME_DIGITS$}");
        if !names.contains(name.as_str()) {
            return name;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokens::{NewToken, TokenMatch};

    fn new(name: &str, expires: Option<Timestamp>) -> NewToken {
        NewToken {
            name: name.to_owned(),
            principal: Principal::unix(7),
            scopes: Vec::new(),
            expires,
        }
    }

    #[test]
    fn a_browser_gets_a_token_for_a_month_and_expired_ones_leave() {
        let dir = tempfile::tempdir().unwrap();
        let store = TokenStore::new(dir.path().join("tokens.json"));
        let now = Timestamp::now();
        let before = now - SignedDuration::from_secs(1);
        store.create(new("person", Some(before))).unwrap();
        let create = |at| store.create_for_browser(Principal::unix(7), at).unwrap();
        let month = SignedDuration::from_hours(24 * BROWSER_DAYS);
        let (_, expired) = create(now - month);
        let (secret, token) = create(now);
        assert!(token.is_for_browser() && token.name.len() == "browser-".len() + 8);
        assert_eq!(token.expires, Some(now + month));
        assert_eq!(token.scopes, [TokenScope::SessionsAll]);
        let found = store.find(secret.reveal()).unwrap();
        assert_eq!(found, TokenMatch::Valid(token.clone()));
        let listed = store.list().unwrap().into_iter();
        let names: HashSet<_> = listed.map(|it| it.name).collect();
        assert_eq!(names, HashSet::from(["person".to_owned(), token.name]));
        assert!(!names.contains(&expired.name));
    }

    #[test]
    fn tokens_that_people_named_are_for_no_browser() {
        let dir = tempfile::tempdir().unwrap();
        let store = TokenStore::new(dir.path().join("tokens.json"));
        let later = Timestamp::now() + SignedDuration::from_hours(1);
        for (name, expires) in [
            ("browser", Some(later)),
            ("browser-1234567", Some(later)),
            ("browser-123456789", Some(later)),
            ("browser-1234567a", Some(later)),
            ("browser-12345678", None),
        ] {
            store.create(new(name, expires)).unwrap();
        }
        assert!(
            !store
                .list()
                .unwrap()
                .iter()
                .any(AccessToken::is_for_browser)
        );
    }
}
