//! Options of the HTTP server.

use ostler_model::owner::Principal;

use crate::rate_limit::RateLimit;
use crate::site::WebFiles;
use crate::tokens::TokenStore;

/// Options of the HTTP server.
#[derive(Debug, Clone)]
pub struct HttpOptions {
    /// Prefix of every path: empty, or `/` and segments with `/` between them.
    pub url_prefix: String,
    /// Which clients are accepted.
    pub access: HttpAccess,
    /// Names accepted in `Host` besides those of this machine's loopback.
    pub hosts: Vec<String>,
    /// Origins accepted besides those of this machine's loopback.
    pub origins: Vec<String>,
    /// The project of HTTP clients: later sessions of it see what they keep.
    pub project: Option<String>,
    /// The files of the web interface.
    pub web_files: WebFiles,
    /// How many requests of one principal are answered a second; none for no limit.
    pub rate_limit: Option<RateLimit>,
}

/// Which clients are accepted.
#[derive(Debug, Clone)]
pub enum HttpAccess {
    /// Clients with one of these tokens.
    Tokens(TokenStore),
    /// Every client that reaches the address, as this principal.
    Open(Principal),
}

impl HttpOptions {
    /// The defaults, for a loopback address, with the project of every client.
    #[must_use]
    pub const fn new(access: HttpAccess, project: Option<String>) -> Self {
        Self {
            url_prefix: String::new(),
            access,
            hosts: Vec::new(),
            origins: Vec::new(),
            project,
            web_files: WebFiles::Absent("this server has none"),
            rate_limit: None,
        }
    }
}
