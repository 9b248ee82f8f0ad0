//! Options of MCP over HTTP.

use std::path::PathBuf;
use std::time::Duration;

use crate::ClientContext;

/// A session without a request ends after this long, in milliseconds.
pub const SESSION_IDLE_MS: u64 = 30 * 60 * 1_000;
/// A client of the handshake era may resume a lost response stream for this long, in milliseconds;
/// then its call is cancelled.
pub const RESUME_MS: u64 = 10_000;

/// Options of MCP over HTTP.
#[derive(Debug, Clone)]
pub struct McpHttpOptions {
    /// Prefix of every path, which the endpoint event of the old transport must name: empty, or `/`
    /// and segments with `/` between them.
    pub url_prefix: String,
    /// Whether the HTTP+SSE transport of 2024-11-05 is served too.
    pub legacy_sse: bool,
    /// The directory and environment of commands; HTTP clients bring none of their own.
    pub client_context: ClientContext,
    /// How long a session is kept without a request.
    pub session_idle: Duration,
    /// Where sessions are stored for the next daemon; none means that they end with this one.
    pub sessions_file: Option<PathBuf>,
    /// How long a lost response stream of the handshake era may be resumed.
    pub resume: Duration,
}

impl McpHttpOptions {
    /// The defaults.
    #[must_use]
    pub const fn new(client_context: ClientContext) -> Self {
        Self {
            url_prefix: String::new(),
            legacy_sse: false,
            client_context,
            session_idle: Duration::from_millis(SESSION_IDLE_MS),
            sessions_file: None,
            resume: Duration::from_millis(RESUME_MS),
        }
    }
}
