//! How HTTP is served.

use std::path::PathBuf;
use std::time::Duration;

use ostler_engine::project_of;
use ostler_model::owner::Principal;

use super::tokens::TokenStore;
use crate::mcp::ClientContext;

/// A session without a request ends after this long, in milliseconds.
pub const SESSION_IDLE_MS: u64 = 30 * 60 * 1_000;
/// A client of the handshake era that lost a response stream may come back to it for this
/// long, in milliseconds; then its call is cancelled.
pub const RESUME_MS: u64 = 10_000;

/// How HTTP is served.
#[derive(Debug, Clone)]
pub struct HttpOptions {
    /// Every path begins with it: empty, or `/` and words with `/` between them.
    pub url_prefix: String,
    /// Whether the HTTP+SSE transport of 2024-11-05 is there too.
    pub legacy_sse: bool,
    /// Who may come in.
    pub access: HttpAccess,
    /// Names in `Host` that pass besides those of this machine's loopback.
    pub hosts: Vec<String>,
    /// Origins that pass besides those of this machine's loopback.
    pub origins: Vec<String>,
    /// Where commands start and with what; HTTP clients bring none of their own.
    pub client_context: ClientContext,
    /// The project of HTTP clients: what they keep is seen by its later sessions.
    pub project: Option<String>,
    /// How long a session is kept without a request.
    pub session_idle: Duration,
    /// Where sessions stand for the next daemon; none: they end with this one.
    pub sessions_file: Option<PathBuf>,
    /// How long a lost response stream of the handshake era may be taken up again.
    pub resume: Duration,
}

/// Who may come in.
#[derive(Debug, Clone)]
pub enum HttpAccess {
    /// Who has one of these tokens.
    Tokens(TokenStore),
    /// Everybody who reaches the address, as this principal.
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
