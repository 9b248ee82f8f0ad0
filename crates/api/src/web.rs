//! Signing in at the page.

use std::fmt;

use ostler_model::{Principal, Timestamp};
use serde::{Deserialize, Serialize};

/// `POST /api/v1/web/session`: signs in with one of the two. `Debug` does not show them.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WebSignInBody {
    /// A token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// The code of a link, which is valid once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
}

/// Who is signed in. `Debug` does not show the page key.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WebSessionBody {
    /// Whether requests need a token at all.
    pub token_needed: bool,
    /// Whom requests are made for.
    pub principal: Principal,
    /// What the token permits; empty where none is needed. One with none of the scopes of projects
    /// may write.
    pub scopes: Vec<String>,
    /// From when on the token is refused; absent for one that does not expire. The cookie of one
    /// without, or of a later one, ends after 30 days.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<Timestamp>,
    /// What each request of the page sends as `Ostler-Page-Key`; only where one has just signed in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page_key: Option<String>,
}

/// `POST /api/v1/web/codes`: a link that opens the page. `Debug` does not show it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WebLinkBody {
    /// Its address.
    pub url: String,
    /// Until when it signs in, once; absent where no token is needed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<Timestamp>,
}

impl fmt::Debug for WebSignInBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebSignInBody").finish_non_exhaustive()
    }
}

impl fmt::Debug for WebSessionBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebSessionBody")
            .field("token_needed", &self.token_needed)
            .field("principal", &self.principal)
            .field("scopes", &self.scopes)
            .field("expires", &self.expires)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for WebLinkBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebLinkBody")
            .field("expires", &self.expires)
            .finish_non_exhaustive()
    }
}
