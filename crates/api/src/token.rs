//! Tokens for access over HTTP.

use std::fmt;

use ostler_model::{Principal, Timestamp};
use serde::{Deserialize, Serialize};

/// One token, without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenBody {
    /// Its name.
    pub name: String,
    /// Whom it authenticates.
    pub principal: Principal,
    /// What it permits: `sessions:all`, `daemon:stop`, `project:read`, `project:write`, and for one
    /// project `project:read=PROJECT`, `project:write=PROJECT`. One with none of the scopes of
    /// projects may write.
    pub scopes: Vec<String>,
    /// When it was created.
    pub created: Timestamp,
    /// From when on it is refused; absent for one that does not expire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<Timestamp>,
    /// When it was last used, to a minute; absent for one that was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used: Option<Timestamp>,
}

/// `GET /api/v1/tokens`: all of them, oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokensBody {
    /// The tokens.
    pub tokens: Vec<TokenBody>,
}

/// `POST /api/v1/tokens`: creates a token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewTokenBody {
    /// A unique name.
    pub name: String,
    /// Whom it authenticates, apart from all others; absent means the daemon's user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<String>,
    /// What it permits: `sessions:all`, `daemon:stop`, `project:read`, `project:write`, and for one
    /// project `project:read=PROJECT`, `project:write=PROJECT`. One with none of the scopes of
    /// projects may write.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<String>,
    /// From when on it is refused; absent for one that does not expire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<Timestamp>,
}

/// A token that was created. `Debug` does not show its secret.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenCreatedBody {
    /// Its name.
    pub name: String,
    /// Whom it authenticates.
    pub principal: Principal,
    /// From when on it is refused; absent for one that does not expire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<Timestamp>,
    /// Its secret, for `Authorization: Bearer`; it is shown this once.
    pub token: String,
}

impl fmt::Debug for TokenCreatedBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenCreatedBody")
            .field("name", &self.name)
            .field("principal", &self.principal)
            .field("expires", &self.expires)
            .finish_non_exhaustive()
    }
}
