//! The mountable endpoint: checked bodies in front of the library's service.

use std::pin::Pin;
use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse as _, Response};
use futures_util::future;
use ostler_engine::KeyedMutex;
use rmcp::ServerHandler;
use rmcp::transport::streamable_http_server::StreamableHttpServerConfig;
use rmcp::transport::streamable_http_server::session::store::SessionStoreError;
use rmcp::transport::streamable_http_server::session::{
    SessionManager as _, SessionState, SessionStore,
};
use rmcp::transport::streamable_http_server::tower::StreamableHttpService;
use tokio_util::task::TaskTracker;
use tower::ServiceExt as _;

use super::body_check::{self, BodyCheck};
use super::config::StreamableConfig;
use super::sessions::HookedSessionManager;
use crate::handler::McpHandler;
use crate::session_hooks::{MCP_SESSION_HEADER, SessionHooks};
use crate::state::McpState;

/// The mountable MCP endpoint. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct StreamableHttp {
    router: Router,
    manager: Arc<HookedSessionManager>,
    /// By session. The library counts a session of an earlier daemon as present before its handshake
    /// is replayed; a second request that came in between would be its first message, and end it.
    restore_locks: Arc<KeyedMutex<String>>,
    tasks: TaskTracker,
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
    let tasks = streaming.tasks.clone();
    let manager = Arc::new(HookedSessionManager::new(streaming));
    let service =
        StreamableHttpService::new(move || Ok(make_handler()), Arc::clone(&manager), config);
    let body_check = from_fn_with_state(bodies, body_check::check_body);
    let router = Router::new().fallback_service(service).layer(body_check);
    StreamableHttp {
        router,
        manager,
        restore_locks: Arc::default(),
        tasks,
    }
}

impl StreamableHttp {
    /// Answers a request, on any path.
    pub(crate) async fn serve(&self, request: Request) -> Response {
        let id = request.headers().get(MCP_SESSION_HEADER);
        let id = id.and_then(|id| id.to_str().ok()).map(str::to_owned);
        let answering = answer(self.router.clone(), request);
        let Some(id) = id else {
            return answering.await;
        };
        if self.manager.is_ready(&id).await {
            return answering.await;
        }
        let lock = self.restore_locks.lock(id).await;
        // To its end also where the client goes: a session that is half restored ends.
        let restoring = self.tasks.spawn(async move {
            let response = answering.await;
            drop(lock);
            response
        });
        let failed = |_| StatusCode::INTERNAL_SERVER_ERROR.into_response();
        restoring.await.unwrap_or_else(failed)
    }

    /// Ends an MCP session of the handshake era, as its `DELETE` does.
    pub(crate) async fn close(&self, id: &str) {
        if let Err(error) = self.manager.close_session(&id.into()).await {
            tracing::warn!(id, %error, "the MCP session did not close");
        }
    }
}

async fn answer(router: Router, request: Request) -> Response {
    let result = router.oneshot(request).await;
    result.unwrap_or_else(|never| match never {})
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
