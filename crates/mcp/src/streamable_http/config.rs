//! Configuration of the endpoint.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::handler::HttpRequests;
use crate::session_hooks::SessionHooks;

/// Configuration of MCP over HTTP.
#[derive(Debug, Clone)]
pub(crate) struct StreamableConfig {
    /// Callbacks that identify callers and keep sessions.
    pub hooks: Arc<dyn SessionHooks>,
    /// The largest request body, in bytes.
    pub body_bytes: usize,
    /// How long a client of the handshake era has to resume a lost stream before its call counts as
    /// cancelled.
    pub resume_window: Duration,
    /// Cancelled when the daemon shuts down: calls are answered with their present state.
    pub shutdown: CancellationToken,
    /// Cancelled after that, to end every stream and session.
    pub transport_end: CancellationToken,
    /// Work to await before the process ends.
    pub tasks: TaskTracker,
}

impl StreamableConfig {
    /// What its requests have in common for a handler.
    pub(crate) fn requests(&self) -> HttpRequests {
        HttpRequests {
            hooks: Arc::clone(&self.hooks),
            shutdown: self.shutdown.clone(),
        }
    }
}
