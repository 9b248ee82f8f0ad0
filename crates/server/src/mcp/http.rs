//! Streamable HTTP, both protocol eras on one path.
//!
//! The library answers the requests; [`HookedSessionManager`] keeps the sessions of the handshake
//! era, so that the embedding router is notified when one starts and ends.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::middleware::from_fn_with_state;
use futures_util::future::{self, BoxFuture};
use rmcp::ServerHandler;
use rmcp::transport::streamable_http_server::StreamableHttpServerConfig;
use rmcp::transport::streamable_http_server::session::store::SessionStoreError;
use rmcp::transport::streamable_http_server::session::{
    SessionManager as _, SessionState, SessionStore,
};
use rmcp::transport::streamable_http_server::tower::StreamableHttpService;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::handler::McpHandler;
use super::http_body_check::{self, BodyCheck};
use super::http_sessions::HookedSessionManager;
use super::state::McpState;

/// Callbacks of the router that MCP is mounted in, which identifies callers and keeps sessions.
pub trait SessionHooks: fmt::Debug + Send + Sync + 'static {
    /// An MCP session starts with these parameters of `initialize`, in a request with these
    /// extensions. The implementation may replace its [`ConnectedClient`](super::ConnectedClient),
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
pub struct StreamableConfig {
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

/// The mountable MCP endpoint. Cheap to clone.
#[derive(Debug, Clone)]
pub struct StreamableHttp {
    router: Router,
    manager: Arc<HookedSessionManager>,
}

/// The MCP endpoint. Each request must carry its [`ConnectedClient`](super::ConnectedClient) as an
/// extension: identity, session and tools are determined by the router it is mounted in.
#[must_use]
pub fn streamable(mcp_state: &McpState, streaming: StreamableConfig) -> StreamableHttp {
    let handler = McpHandler::of_requests(mcp_state.clone(), streaming.tasks.clone());
    streamable_over(move || handler.clone(), streaming)
}

/// The same transport with another handler.
pub(crate) fn streamable_over<S: ServerHandler + Send + 'static>(
    make_handler: impl Fn() -> S + Send + Sync + 'static,
    streaming: StreamableConfig,
) -> StreamableHttp {
    // Host and Origin have been checked before a request gets here.
    let mut config = StreamableHttpServerConfig::default()
        .disable_allowed_hosts()
        .disable_allowed_origins()
        .with_max_request_body_bytes(streaming.body_bytes)
        .with_cancellation_token(streaming.shutdown.clone());
    config.session_store = Some(Arc::new(HookSessionStore(Arc::clone(&streaming.hooks))));
    let bodies = BodyCheck {
        limit: streaming.body_bytes,
        hooks: Arc::clone(&streaming.hooks),
    };
    let manager = Arc::new(HookedSessionManager::new(streaming));
    let service =
        StreamableHttpService::new(move || Ok(make_handler()), Arc::clone(&manager), config);
    let body_check = from_fn_with_state(bodies, http_body_check::check_body);
    let router = Router::new().fallback_service(service).layer(body_check);
    StreamableHttp { router, manager }
}

impl StreamableHttp {
    /// A router that answers on every path.
    pub fn router(&self) -> Router {
        self.router.clone()
    }

    /// Ends an MCP session of the handshake era, as its `DELETE` does.
    pub async fn close(&self, id: &str) {
        if let Err(error) = self.manager.close_session(&id.into()).await {
            tracing::warn!(id, %error, "the MCP session did not close");
        }
    }
}

/// Looks up the sessions of an earlier daemon for the library. Their start and end are reported
/// through [`SessionHooks`].
struct HookSessionStore(Arc<dyn SessionHooks>);

type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, SessionStoreError>> + Send + 'a>>;

impl SessionStore for HookSessionStore {
    fn load<'a, 'b, 'c>(&'a self, id: &'b str) -> StoreFuture<'c, Option<SessionState>>
    where
        'a: 'c,
        'b: 'c,
        Self: 'c,
    {
        let state = self
            .0
            .initialize_params(id)
            .map(serde_json::from_value)
            .transpose();
        let state = state.map(|params| params.map(SessionState::new));
        Box::pin(future::ready(state.map_err(Into::into)))
    }

    fn store<'a, 'b, 'c, 'd>(
        &'a self,
        _id: &'b str,
        _state: &'c SessionState,
    ) -> StoreFuture<'d, ()>
    where
        'a: 'd,
        'b: 'd,
        'c: 'd,
        Self: 'd,
    {
        Box::pin(future::ready(Ok(())))
    }

    fn delete<'a, 'b, 'c>(&'a self, _id: &'b str) -> StoreFuture<'c, ()>
    where
        'a: 'c,
        'b: 'c,
        Self: 'c,
    {
        Box::pin(future::ready(Ok(())))
    }
}
