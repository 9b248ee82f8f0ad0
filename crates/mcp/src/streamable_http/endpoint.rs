//! The mountable endpoint: checked bodies in front of the library's service.

use std::pin::Pin;
use std::sync::Arc;

use axum::Router;
use axum::middleware::from_fn_with_state;
use futures_util::future;
use rmcp::ServerHandler;
use rmcp::transport::streamable_http_server::StreamableHttpServerConfig;
use rmcp::transport::streamable_http_server::session::store::SessionStoreError;
use rmcp::transport::streamable_http_server::session::{
    SessionManager as _, SessionState, SessionStore,
};
use rmcp::transport::streamable_http_server::tower::StreamableHttpService;

use super::body_check::{self, BodyCheck};
use super::config::StreamableConfig;
use super::sessions::HookedSessionManager;
use crate::handler::McpHandler;
use crate::session_hooks::SessionHooks;
use crate::state::McpState;

/// The mountable MCP endpoint. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct StreamableHttp {
    router: Router,
    manager: Arc<HookedSessionManager>,
}

/// The MCP endpoint. Each request must carry its [`ConnectedClient`](crate::ConnectedClient) as an
/// extension: identity, session and tools are determined by the router it is mounted in.
#[must_use]
pub(crate) fn streamable(mcp_state: &McpState, streaming: StreamableConfig) -> StreamableHttp {
    let (requests, calls) = (streaming.requests(), streaming.tasks.clone());
    let handler = McpHandler::of_requests(mcp_state.clone(), requests, calls);
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
        .with_cancellation_token(streaming.transport_end.clone());
    config.session_store = Some(Arc::new(HookSessionStore(Arc::clone(&streaming.hooks))));
    let bodies = BodyCheck {
        limit: streaming.body_bytes,
        hooks: Arc::clone(&streaming.hooks),
    };
    let manager = Arc::new(HookedSessionManager::new(streaming));
    let service =
        StreamableHttpService::new(move || Ok(make_handler()), Arc::clone(&manager), config);
    let body_check = from_fn_with_state(bodies, body_check::check_body);
    let router = Router::new().fallback_service(service).layer(body_check);
    StreamableHttp { router, manager }
}

impl StreamableHttp {
    /// A router that answers on every path.
    pub(crate) fn router(&self) -> Router {
        self.router.clone()
    }

    /// Ends an MCP session of the handshake era, as its `DELETE` does.
    pub(crate) async fn close(&self, id: &str) {
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
