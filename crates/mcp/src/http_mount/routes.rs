//! The routes of MCP over HTTP, to be mounted behind authentication.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Path, Request, State};
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::any;
use ostler_interface::http::{BODY_BYTES, HttpProblem, SessionUses, hold_until_sent};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::options::McpHttpOptions;
use super::request_target::{self, PathParams, RequestTarget};
use super::sessions::HttpSessions;
use super::sse_routes::{self, SseParts};
use crate::client::ClientContext;
use crate::session_hooks::SHUTDOWN_ANSWERS_MS;
use crate::state::McpState;
use crate::streamable_http::{StreamableConfig, StreamableHttp, streamable};

/// What MCP over HTTP is made of.
#[derive(Debug)]
pub struct McpHttpParts {
    /// State shared by MCP clients.
    pub state: McpState,
    /// The options.
    pub options: McpHttpOptions,
    /// Ends every stream; the listener must have the same token.
    pub shutdown: CancellationToken,
    /// Work to await before the process ends.
    pub tasks: TaskTracker,
}

/// MCP over HTTP.
#[derive(Debug)]
pub struct McpHttp {
    /// The routes.
    pub routes: Router,
    /// The sessions of their clients, for other routes whose requests use sessions, too.
    pub sessions: Arc<dyn SessionUses>,
}

/// State of the routes.
#[derive(Debug, Clone)]
struct McpRouteState {
    mcp: StreamableHttp,
    sessions: HttpSessions,
    client_context: Arc<ClientContext>,
    /// Requests by POST whose responses are not sent yet.
    posts: TaskTracker,
}

/// The routes of MCP. Each request must carry its
/// [`HttpIdentity`](ostler_interface::http::HttpIdentity) as an extension. Must be called within a
/// tokio runtime: it spawns a task that ends idle sessions.
pub fn http_routes(parts: McpHttpParts) -> McpHttp {
    let mcp_state = parts.state.clone();
    http_routes_with_handler(parts, |config| streamable(&mcp_state, config))
}

/// The same routes around another MCP handler.
pub(crate) fn http_routes_with_handler(
    parts: McpHttpParts,
    mcp: impl FnOnce(StreamableConfig) -> StreamableHttp,
) -> McpHttp {
    let McpHttpParts {
        state: mcp_state,
        options,
        shutdown,
        tasks,
    } = parts;
    let (idle, file) = (options.session_idle, options.sessions_file);
    let sessions = HttpSessions::new(mcp_state.clone(), idle, file, shutdown.clone());
    let transport_end = CancellationToken::new();
    let mcp = mcp(StreamableConfig {
        hooks: Arc::new(sessions.clone()),
        body_bytes: BODY_BYTES,
        resume_window: options.resume,
        shutdown: shutdown.clone(),
        transport_end: transport_end.clone(),
        tasks: tasks.clone(),
    });
    tasks.spawn(sessions.clone().run(mcp.clone()));
    let posts = TaskTracker::new();
    tasks.spawn(end_transport(
        shutdown.clone(),
        posts.clone(),
        transport_end,
    ));
    let client_context = Arc::new(options.client_context);
    let state = McpRouteState {
        mcp,
        sessions: sessions.clone(),
        client_context: Arc::clone(&client_context),
        posts,
    };
    let uses = Arc::new(sessions.clone());
    let mut routes = mcp_routes().with_state(state);
    if options.legacy_sse {
        routes = routes.merge(sse_routes::routes(SseParts {
            mcp_state,
            sessions,
            client_context,
            prefix: options.url_prefix,
            shutdown,
            tasks,
        }));
    }
    McpHttp {
        routes,
        sessions: uses,
    }
}

/// Once the daemon shuts down, gives requests under way the time to be answered.
async fn end_transport(shutdown: CancellationToken, posts: TaskTracker, end: CancellationToken) {
    shutdown.cancelled().await;
    posts.close();
    let limit = Duration::from_millis(SHUTDOWN_ANSWERS_MS);
    if timeout(limit, posts.wait()).await.is_err() {
        tracing::info!("clients over HTTP did not read the answers to their last requests");
    }
    end.cancel();
}

fn mcp_routes() -> Router<McpRouteState> {
    let paths = [
        "/mcp",
        "/mcp/p/{profile}",
        "/mcp/s/{name}",
        "/mcp/s/{name}/p/{profile}",
    ];
    let mount = |routes: Router<McpRouteState>, path| routes.route(path, any(serve_mcp));
    paths.into_iter().fold(Router::new(), mount)
}

/// Serves MCP on behalf of the client that the request acts for.
async fn serve_mcp(
    State(state): State<McpRouteState>,
    Path(params): Path<PathParams>,
    request: Request,
) -> Result<Response, HttpProblem> {
    let (mut parts, body) = request.into_parts();
    match request_target::identify_request(
        &mut parts,
        &params,
        &state.sessions,
        &state.client_context,
    )? {
        RequestTarget::EndSession(key) => {
            state.sessions.end(&key).await?;
            Ok(StatusCode::NO_CONTENT.into_response())
        }
        RequestTarget::EndSessionPart(caller) => {
            state.sessions.end_part(&caller).await?;
            Ok(StatusCode::NO_CONTENT.into_response())
        }
        RequestTarget::Mcp(session_use) => {
            // The streams that a client opens by GET have nothing to deliver at the end.
            let is_post = parts.method == Method::POST;
            let held = (session_use, is_post.then(|| state.posts.token()));
            let response = state.mcp.serve(Request::from_parts(parts, body)).await;
            Ok(hold_until_sent(response, held))
        }
    }
}
