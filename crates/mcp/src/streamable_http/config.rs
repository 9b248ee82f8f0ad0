//! Configuration of the endpoint, and its callbacks.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Callbacks of the router that MCP is mounted in, which identifies callers and keeps sessions.
pub(crate) trait SessionHooks: fmt::Debug + Send + Sync + 'static {
    /// An MCP session starts with these parameters of `initialize`, in a request with these
    /// extensions. The implementation may replace its [`ConnectedClient`](crate::ConnectedClient),
    /// which is then that of the session.
    fn on_session_started(&self, id: &str, initialize: Value, extensions: &mut http::Extensions);

    /// The `initialize` parameters of the session with this id, unless it has ended; an earlier
    /// daemon may have created it.
    fn initialize_params(&self, id: &str) -> Option<Value>;

    /// An MCP session has ended, for whatever reason.
    fn on_session_ended<'a>(&'a self, id: &'a str) -> BoxFuture<'a, ()>;
}

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
    /// Cancelled to end every stream and session.
    pub shutdown: CancellationToken,
    /// Work to await before the process ends.
    pub tasks: TaskTracker,
}
