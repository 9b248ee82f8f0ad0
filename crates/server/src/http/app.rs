//! Everything that is mounted, and what every request passes on its way there.

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

use super::auth::Identity;
use super::guard::Guard;
use super::in_flight::InFlight;
use super::limits::{self, BODY_BYTES};
use super::options::{Access, HttpOptions};
use super::sessions::Sessions;
use super::sse;
use super::visit::{self, Visit, Words};
use crate::listen::Seat;
use crate::mcp::{Desk, FrontContext, Streamable, Streaming, streamable};
use crate::wire::Problem;

/// What is put together.
#[derive(Debug)]
pub struct Parts {
    /// What MCP clients share.
    pub desk: Desk,
    /// The routes of [`rest`](crate::rest).
    pub rest: Router,
    /// How it is served.
    pub options: HttpOptions,
    /// Ends every stream; give [`listen_tcp`](crate::listen::listen_tcp) the same.
    pub shutdown: CancellationToken,
    /// What must be done before the process ends.
    pub tasks: TaskTracker,
}

/// What MCP requests are served with.
#[derive(Debug, Clone)]
struct Hall {
    mcp: Router,
    sessions: Sessions,
    front: Arc<FrontContext>,
}

/// The door.
#[derive(Debug)]
struct Door {
    guard: Guard,
    access: Access,
    in_flight: Arc<InFlight>,
    /// The project of everybody who comes in.
    project: Option<String>,
}

/// MCP and REST, for [`listen_tcp`](crate::listen::listen_tcp). To be called in a runtime: it
/// has a task that ends idle sessions.
pub fn app(parts: Parts) -> Router {
    let desk = parts.desk.clone();
    app_over(parts, |streaming| streamable(&desk, streaming))
}

/// The same around another MCP handler.
pub fn app_over(parts: Parts, mcp: impl FnOnce(Streaming) -> Streamable) -> Router {
    let Parts {
        desk,
        rest,
        options,
        shutdown,
        tasks,
    } = parts;
    let (idle, file) = (options.session_idle, options.sessions_file);
    let sessions = Sessions::new(desk.clone(), idle, file, shutdown.clone());
    let mcp = mcp(Streaming {
        door: Arc::new(sessions.clone()),
        body_bytes: BODY_BYTES,
        resume: options.resume,
        shutdown: shutdown.clone(),
        tasks: tasks.clone(),
    });
    tasks.spawn(sessions.clone().keep(mcp.clone()));
    let hall = Hall {
        mcp: mcp.router(),
        sessions: sessions.clone(),
        front: Arc::new(options.front),
    };
    let mut routes = Router::new()
        .merge(mcp_routes().with_state(hall.clone()))
        .merge(rest_routes(rest));
    if options.legacy_sse {
        let front = Arc::clone(&hall.front);
        let prefix = options.url_prefix.clone();
        routes = routes.merge(sse::routes(
            desk,
            sessions,
            front,
            (prefix, shutdown, tasks),
        ));
    }
    let door = Arc::new(Door {
        guard: Guard {
            hosts: options.hosts,
            origins: options.origins,
        },
        access: options.access,
        in_flight: Arc::default(),
        project: options.project,
    });
    prefixed(&options.url_prefix, routes)
        .layer(middleware::from_fn(limits::bounded))
        .layer(middleware::from_fn_with_state(door, enter))
}

fn prefixed(prefix: &str, routes: Router) -> Router {
    if prefix.is_empty() {
        return routes;
    }
    Router::new().nest(prefix, routes)
}

fn mcp_routes() -> Router<Hall> {
    let paths = [
        "/mcp",
        "/mcp/p/{profile}",
        "/mcp/s/{name}",
        "/mcp/s/{name}/p/{profile}",
    ];
    let mount = |routes: Router<Hall>, path| routes.route(path, any(answer));
    paths.into_iter().fold(Router::new(), mount)
}

fn rest_routes(rest: Router) -> Router {
    rest.layer(middleware::from_fn(introduce))
}

/// The door: who does not belong here gets no further.
async fn enter(State(door): State<Arc<Door>>, request: Request, next: Next) -> Response {
    let (mut parts, body) = request.into_parts();
    if let Err(problem) = door.guard.check(&parts) {
        return turned_away(problem.into_response());
    }
    let identity = match door.access.identify(&parts.headers) {
        Ok(identity) => identity,
        Err(stranger) => return turned_away(stranger.response()),
    };
    let request = match door.in_flight.begin(&identity.principal) {
        Ok(request) => Arc::new(request),
        Err(problem) => return turned_away(problem.into_response()),
    };
    parts.extensions.insert(Identity {
        project: door.project.clone(),
        ..identity
    });
    // An upgraded connection goes on behind its answer.
    if let Some(seat) = parts.extensions.remove::<Seat>() {
        parts.extensions.insert(seat.holding(request.clone()));
    }
    // Nobody further in needs the secret, and what is not there is not logged.
    parts.headers.remove(AUTHORIZATION);
    let response = next.run(Request::from_parts(parts, body)).await;
    held(response, request)
}

/// A stranger's body is not read, so the connection cannot carry another request; the client
/// is told, or it would try (RFC 9112 §9.6).
fn turned_away(mut response: Response) -> Response {
    let close = HeaderValue::from_static("close");
    response.headers_mut().insert(CONNECTION, close);
    response
}

/// REST takes its caller from the token.
async fn introduce(request: Request, next: Next) -> Response {
    let (mut parts, body) = request.into_parts();
    let identity = match visit::identity(&parts) {
        Ok(identity) => identity,
        Err(problem) => return problem.into_response(),
    };
    let route = parts.extensions.get::<MatchedPath>();
    let ends_daemon = route.is_some_and(|route| route.as_str().ends_with("/api/v1/shutdown"));
    if ends_daemon && !identity.may_stop() {
        let message = "the token does not have the scope daemon:stop";
        return Problem::new(ErrorCode::Permission, message, None).into_response();
    }
    parts.extensions.insert(identity.rest_caller());
    next.run(limits::limited(Request::from_parts(parts, body)))
        .await
}

/// MCP, for whomever the request speaks for.
async fn answer(
    State(hall): State<Hall>,
    Path(words): Path<Words>,
    request: Request,
) -> Result<Response, Problem> {
    let (mut parts, body) = request.into_parts();
    match visit::visit(&mut parts, &words, &hall.sessions, &hall.front)? {
        Visit::Ends(key) => {
            hall.sessions.end(&key).await?;
            Ok(StatusCode::NO_CONTENT.into_response())
        }
        Visit::Served(stay) => {
            let answered = hall.mcp.oneshot(Request::from_parts(parts, body)).await;
            let response = answered.unwrap_or_else(|never| match never {});
            Ok(held(response, stay))
        }
    }
}

/// The same answer; what it holds is in use until it is through.
fn held(response: Response, held: impl Send + Unpin + 'static) -> Response {
    response.map(|body| Body::new(GuardedBody { body, _held: held }))
}

/// A body, and what lives as long as it does.
struct GuardedBody<T> {
    body: Body,
    _held: T,
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
