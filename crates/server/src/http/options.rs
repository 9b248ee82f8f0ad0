//! Options of the HTTP server.

use std::path::PathBuf;
use std::time::Duration;

use ostler_engine::project_of;
use ostler_model::owner::Principal;

use super::tokens::TokenStore;
use crate::mcp::ClientContext;

/// A session without a request ends after this long, in milliseconds.
pub const SESSION_IDLE_MS: u64 = 30 * 60 * 1_000;
/// A client of the handshake era may resume a lost response stream for this long, in milliseconds;
/// then its call is cancelled.
pub const RESUME_MS: u64 = 10_000;

/// Options of the HTTP server.
#[derive(Debug, Clone)]
pub struct HttpOptions {
    /// Prefix of every path: empty, or `/` and segments with `/` between them.
    pub url_prefix: String,
    /// Whether the HTTP+SSE transport of 2024-11-05 is served too.
    pub legacy_sse: bool,
    /// Which clients are accepted.
    pub access: HttpAccess,
    /// Names accepted in `Host` besides those of this machine's loopback.
    pub hosts: Vec<String>,
    /// Origins accepted besides those of this machine's loopback.
    pub origins: Vec<String>,
    /// The directory and environment of commands; HTTP clients bring none of their own.
    pub client_context: ClientContext,
    /// The project of HTTP clients: later sessions of it see what they keep.
    pub project: Option<String>,
    /// How long a session is kept without a request.
    pub session_idle: Duration,
    /// Where sessions are stored for the next daemon; none means that they end with this one.
    pub sessions_file: Option<PathBuf>,
    /// How long a lost response stream of the handshake era may be resumed.
    pub resume: Duration,
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
    /// The defaults, for a loopback address.
    #[must_use]
    pub fn new(access: HttpAccess, client_context: ClientContext) -> Self {
        Self {
            url_prefix: String::new(),
            legacy_sse: false,
            access,
            hosts: Vec::new(),
            origins: Vec::new(),
            project: Some(project_of(client_context.cwd.as_path(), None)),
            client_context,
            session_idle: Duration::from_millis(SESSION_IDLE_MS),
            sessions_file: None,
            resume: Duration::from_millis(RESUME_MS),
        }
    }
}
