//! The router with everything that is mounted, and the middleware each request passes.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::Router;
use axum::body::{Body, HttpBody};
use axum::extract::{MatchedPath, Path, Request, State};
use axum::http::header::{AUTHORIZATION, CONNECTION};
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use hyper::body::{Bytes, Frame, SizeHint};
use ostler_model::ErrorCode;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt as _;

use super::auth::HttpIdentity;
use super::in_flight::InFlight;
use super::limits::{self, BODY_BYTES};
use super::options::{HttpAccess, HttpOptions};
use super::origin_check::OriginCheck;
use super::request_identity::{self, PathParams, RequestTarget};
use super::sessions::HttpSessions;
use super::sse;
use crate::listen::ConnectionPermit;
use crate::mcp::{ClientContext, McpState, StreamableConfig, StreamableHttp, streamable};
use crate::problem::HttpProblem;

/// What the router is composed of.
#[derive(Debug)]
pub struct AppParts {
    /// State shared by MCP clients.
    pub mcp_state: McpState,
    /// The routes of [`rest`](crate::rest).
    pub rest: Router,
    /// The options of the server.
    pub options: HttpOptions,
    /// Ends every stream; pass the same token to [`listen_tcp`](crate::listen::listen_tcp).
    pub shutdown: CancellationToken,
    /// Work to await before the process ends.
    pub tasks: TaskTracker,
}

/// State of the MCP routes.
#[derive(Debug, Clone)]
struct McpRouteState {
    mcp: Router,
    sessions: HttpSessions,
    client_context: Arc<ClientContext>,
}

/// The authentication middleware.
#[derive(Debug)]
struct AuthLayer {
    origin_check: OriginCheck,
    access: HttpAccess,
    in_flight: Arc<InFlight>,
    /// The project of every client.
    project: Option<String>,
}

/// The router of MCP and REST, for [`listen_tcp`](crate::listen::listen_tcp). Must be called within
/// a tokio runtime: it spawns a task that ends idle sessions.
pub fn app(parts: AppParts) -> Router {
    let mcp_state = parts.mcp_state.clone();
    app_with_handler(parts, |config| streamable(&mcp_state, config))
}

/// The same router around another MCP handler.
pub fn app_with_handler(
    parts: AppParts,
    mcp: impl FnOnce(StreamableConfig) -> StreamableHttp,
) -> Router {
    let AppParts {
        mcp_state,
        rest,
        options,
        shutdown,
        tasks,
    } = parts;
    let (idle, file) = (options.session_idle, options.sessions_file);
    let sessions = HttpSessions::new(mcp_state.clone(), idle, file, shutdown.clone());
    let mcp = mcp(StreamableConfig {
        hooks: Arc::new(sessions.clone()),
        body_bytes: BODY_BYTES,
        resume_window: options.resume,
        shutdown: shutdown.clone(),
        tasks: tasks.clone(),
    });
    tasks.spawn(sessions.clone().run(mcp.clone()));
    let state = McpRouteState {
        mcp: mcp.router(),
        sessions: sessions.clone(),
        client_context: Arc::new(options.client_context),
    };
    let mut routes = Router::new()
        .merge(mcp_routes().with_state(state.clone()))
        .merge(rest_routes(rest));
    if options.legacy_sse {
        let client_context = Arc::clone(&state.client_context);
        let prefix = options.url_prefix.clone();
        routes = routes.merge(sse::routes(
            mcp_state,
            sessions,
            client_context,
            (prefix, shutdown, tasks),
        ));
    }
    let auth = Arc::new(AuthLayer {
        origin_check: OriginCheck {
            hosts: options.hosts,
            origins: options.origins,
        },
        access: options.access,
        in_flight: Arc::default(),
        project: options.project,
    });
    prefixed(&options.url_prefix, routes)
        .layer(middleware::from_fn(limits::reject_too_large))
        .layer(middleware::from_fn_with_state(auth, authenticate))
}

fn prefixed(prefix: &str, routes: Router) -> Router {
    if prefix.is_empty() {
        return routes;
    }
    Router::new().nest(prefix, routes)
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

fn rest_routes(rest: Router) -> Router {
    rest.layer(middleware::from_fn(insert_rest_caller))
}

/// Authenticates a request; one without valid credentials gets no further.
async fn authenticate(
    State(auth): State<Arc<AuthLayer>>,
    request: Request,
    next: Next,
) -> Response {
    let (mut parts, body) = request.into_parts();
    if let Err(problem) = auth.origin_check.check(&parts) {
        return reject(problem.into_response());
    }
    let identity = match auth.access.identify(&parts.headers) {
        Ok(identity) => identity,
        Err(error) => return reject(error.response()),
    };
    let request = match auth.in_flight.start_request(&identity.principal) {
        Ok(request) => Arc::new(request),
        Err(problem) => return reject(problem.into_response()),
    };
    parts.extensions.insert(HttpIdentity {
        project: auth.project.clone(),
        ..identity
    });
    // An upgraded connection continues after its response.
    if let Some(permit) = parts.extensions.remove::<ConnectionPermit>() {
        parts
            .extensions
            .insert(permit.with_request(request.clone()));
    }
    // No later layer needs the secret, and what is removed cannot be logged.
    parts.headers.remove(AUTHORIZATION);
    let response = next.run(Request::from_parts(parts, body)).await;
    hold_until_sent(response, request)
}

/// The body of an unauthenticated request is not read, so the connection cannot carry another one;
/// `Connection: close` tells the client (RFC 9112 §9.6).
fn reject(mut response: Response) -> Response {
    let close = HeaderValue::from_static("close");
    response.headers_mut().insert(CONNECTION, close);
    response
}

/// Takes the caller of REST requests from the token.
async fn insert_rest_caller(request: Request, next: Next) -> Response {
    let (mut parts, body) = request.into_parts();
    let identity = match request_identity::identity(&parts) {
        Ok(identity) => identity,
        Err(problem) => return problem.into_response(),
    };
    let route = parts.extensions.get::<MatchedPath>();
    let is_shutdown = route.is_some_and(|route| route.as_str().ends_with("/api/v1/shutdown"));
    if is_shutdown && !identity.may_stop() {
        let message = "the token does not have the scope daemon:stop";
        return HttpProblem::new(ErrorCode::Permission, message, None).into_response();
    }
    parts.extensions.insert(identity.rest_caller());
    next.run(limits::limit_body(Request::from_parts(parts, body)))
        .await
}

/// Serves MCP on behalf of the client that the request acts for.
async fn serve_mcp(
    State(state): State<McpRouteState>,
    Path(params): Path<PathParams>,
    request: Request,
) -> Result<Response, HttpProblem> {
    let (mut parts, body) = request.into_parts();
    match request_identity::identify_request(
        &mut parts,
        &params,
        &state.sessions,
        &state.client_context,
    )? {
        RequestTarget::EndSession(key) => {
            state.sessions.end(&key).await?;
            Ok(StatusCode::NO_CONTENT.into_response())
        }
        RequestTarget::Mcp(session_use) => {
            let result = state.mcp.oneshot(Request::from_parts(parts, body)).await;
            let response = result.unwrap_or_else(|never| match never {});
            Ok(hold_until_sent(response, session_use))
        }
    }
}

/// The same response; `held` is kept until its body is sent.
fn hold_until_sent(response: Response, held: impl Send + Unpin + 'static) -> Response {
    response.map(|body| Body::new(GuardedBody { body, _guard: held }))
}

/// A body, and a value that lives as long as it does.
struct GuardedBody<T> {
    body: Body,
    _guard: T,
}

impl<T: Unpin> HttpBody for GuardedBody<T> {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
