//! The router with everything that is mounted, and the middleware each request passes.

use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::body::Body;
use axum::extract::{MatchedPath, Request, State};
use axum::http::header::CONNECTION;
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use ostler_engine::{ClientKind, Engine, RefusedRequest};
use ostler_interface::http::{
    HttpIdentity, HttpProblem, SessionUseGuard, SessionUses, hold_until_sent, identity,
    requested_session,
};
use ostler_model::{Caller, ErrorCode};

use crate::auth::{AuthenticatedClient, RequestCredentials};
use crate::content_policy::with_policy;
use crate::in_flight::InFlight;
use crate::limits;
use crate::listen::{ConnectionPermit, RequestToken};
use crate::options::{HttpAccess, HttpOptions};
use crate::origin_check::OriginCheck;
use crate::rate_limit::RateLimiter;
use crate::rest::{docs_page, in_named_session, record_refusal, route_access};
use crate::site::StaticSite;
use crate::valid_response::while_valid;
use crate::web::{SessionChange, is_session_change, remove_credentials, session_change};

/// What the router is composed of.
#[derive(Debug)]
pub struct AppParts {
    /// The routes of MCP; they expect the `HttpIdentity` of each request as an extension.
    pub mcp: Router,
    /// The sessions over HTTP, which requests to REST use, too.
    pub sessions: Arc<dyn SessionUses>,
    /// The routes of [`rest`](crate::rest).
    pub rest: Router,
    /// The engine, whose audit log holds what is refused here.
    pub engine: Engine,
    /// The options of the server.
    pub options: HttpOptions,
}

/// The authentication middleware.
#[derive(Debug)]
struct AuthLayer {
    origin_check: OriginCheck,
    access: HttpAccess,
    site: StaticSite,
    in_flight: Arc<InFlight>,
    rate_limiter: Option<RateLimiter>,
    /// The prefix of every path.
    url_prefix: String,
    /// The project of every client.
    project: Option<String>,
}

/// The router of MCP and REST, for [`listen_tcp`](crate::listen::listen_tcp).
pub fn app(parts: AppParts) -> Router {
    let AppParts {
        mcp,
        sessions,
        rest,
        engine,
        options,
    } = parts;
    let routes = mcp.merge(rest_routes(rest, RestCallerState { sessions, engine }));
    let auth = Arc::new(AuthLayer {
        origin_check: OriginCheck {
            hosts: options.hosts,
            origins: options.origins,
        },
        access: options.access,
        site: StaticSite::new(&options.url_prefix, options.web_files),
        in_flight: Arc::default(),
        rate_limiter: options.rate_limit.map(RateLimiter::new),
        url_prefix: options.url_prefix.clone(),
        project: options.project,
    });
    prefixed(&options.url_prefix, routes)
        .layer(middleware::from_fn(limits::reject_too_large))
        .layer(middleware::from_fn_with_state(auth, authenticate))
        .layer(middleware::map_response(with_policy))
}

fn prefixed(prefix: &str, routes: Router) -> Router {
    if prefix.is_empty() {
        return routes;
    }
    Router::new().nest(prefix, routes)
}

/// State of the middleware that takes the caller of REST requests from the token.
#[derive(Debug, Clone)]
struct RestCallerState {
    sessions: Arc<dyn SessionUses>,
    engine: Engine,
}

fn rest_routes(rest: Router, layer: RestCallerState) -> Router {
    rest.layer(middleware::from_fn_with_state(layer, insert_rest_caller))
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
    if docs_page::is_requested(&auth.url_prefix, &parts) {
        return docs_page::page().await;
    }
    if let Some(response) = auth.site.respond(&parts).await {
        return response;
    }
    if is_session_change(&auth.url_prefix, &parts) {
        return match auth.change_session(parts, body).await {
            Ok(request) => next.run(request).await,
            Err(problem) => reject(problem.into_response()),
        };
    }
    let AuthenticatedClient { identity, validity } = match auth.identify(&parts) {
        Ok(client) => client,
        Err(response) => return reject(*response),
    };
    let rate = auth.rate_limiter.as_ref();
    let counted = rate.map(|rate| rate.count(&identity.principal, Instant::now()));
    if let Some(Err(exceeded)) = counted {
        return reject(exceeded.response());
    }
    let request = match auth.in_flight.start_request(&identity.principal) {
        Ok(request) => Arc::new(request),
        Err(problem) => return reject(problem.into_response()),
    };
    match identity.in_request(&parts.headers, auth.project.as_deref()) {
        Ok(identity) => drop(parts.extensions.insert(identity)),
        Err(problem) => return reject(problem.into_response()),
    }
    // An upgraded connection continues after its response.
    if let Some(permit) = parts.extensions.remove::<ConnectionPermit>() {
        parts.extensions.insert(permit.with_guard(request.clone()));
    }
    remove_credentials(&mut parts.headers);
    let Some(validity) = validity else {
        let response = next.run(Request::from_parts(parts, body)).await;
        return hold_until_sent(response, request);
    };
    let connection = parts.extensions.remove::<RequestToken>();
    let connection = connection.map(|connection| connection.begin(validity.clone()));
    parts.extensions.insert(validity.access_end());
    parts.extensions.insert(validity.clone());
    let answer = next.run(Request::from_parts(parts, body));
    let response = while_valid(answer, validity).await;
    hold_until_sent(response, (request, connection))
}

impl AuthLayer {
    /// The client of a request.
    ///
    /// # Errors
    /// The refusal of one without valid credentials, or with a page's from elsewhere.
    fn identify(&self, parts: &Parts) -> Result<AuthenticatedClient, Box<Response>> {
        let credentials = RequestCredentials::of(parts);
        if credentials.are_of_page() {
            let checked = self.origin_check.check_own_page(parts);
            checked.map_err(|problem| Box::new(problem.into_response()))?;
        }
        let client = self.access.identify(&credentials);
        client.map_err(|error| Box::new(error.response()))
    }

    /// A request that signs in or out: no page elsewhere may send it.
    async fn change_session(&self, parts: Parts, body: Body) -> Result<Request, HttpProblem> {
        self.origin_check.check_own_page(&parts)?;
        session_change(parts, body).await
    }
}

/// The body of an unauthenticated request is not read, so the connection cannot carry another one;
/// `Connection: close` informs the client (RFC 9112 §9.6).
fn reject(mut response: Response) -> Response {
    let close = HeaderValue::from_static("close");
    response.headers_mut().insert(CONNECTION, close);
    response
}

/// Takes the caller of REST requests from the token. What its scopes do not permit is refused, and
/// recorded in the audit log. The session is in use until the response is sent, and as long as what
/// continues on an upgraded connection.
async fn insert_rest_caller(
    State(layer): State<RestCallerState>,
    request: Request,
    next: Next,
) -> Response {
    if request.extensions().get::<SessionChange>().is_some() {
        return next.run(request).await;
    }
    let (mut parts, body) = request.into_parts();
    let identity = match identity(&parts) {
        Ok(identity) => identity,
        Err(problem) => return problem.into_response(),
    };
    let route = parts.extensions.get::<MatchedPath>();
    let route = route.map_or("", MatchedPath::as_str);
    let what = format!("{} {route}", parts.method);
    let session_use = match permitted_caller(&identity, &parts.method, route, &what) {
        Ok(caller) => {
            let session_use = begin_session_use(layer.sessions.as_ref(), &parts, &caller);
            parts.extensions.insert(caller);
            session_use
        }
        Err(problem) => {
            let caller = identity.rest_caller();
            // A name that is no session's is the lesser problem.
            let in_session = in_named_session(caller.clone(), &parts.headers);
            let request = RefusedRequest {
                client_kind: Some(ClientKind::Rest),
                ..RefusedRequest::new(what)
            };
            let caller = in_session.unwrap_or(caller);
            record_refusal(&layer.engine, &caller, request, &problem);
            return problem.into_response();
        }
    };
    let session_use = match session_use {
        Ok(session_use) => session_use,
        Err(problem) => return problem.into_response(),
    };
    let Some(session_use) = session_use else {
        return next
            .run(limits::limit_body(Request::from_parts(parts, body)))
            .await;
    };
    if let Some(permit) = parts.extensions.remove::<ConnectionPermit>() {
        parts
            .extensions
            .insert(permit.with_guard(session_use.clone()));
    }
    let response = next.run(limits::limit_body(Request::from_parts(parts, body)));
    hold_until_sent(response.await, session_use)
}

/// Counts a request as a use of the session that it names, or else of its caller's.
///
/// # Errors
/// When the headers name no session, or more than one; when it is a new one, and there are too many.
fn begin_session_use(
    sessions: &dyn SessionUses,
    parts: &Parts,
    caller: &Caller,
) -> Result<Option<SessionUseGuard>, HttpProblem> {
    let principal = &caller.owner.principal;
    match (requested_session(&parts.headers)?, &caller.owner.session) {
        (Some(named), _) => sessions.begin_named_use(principal, &named),
        (None, Some(shared)) => Ok(sessions.begin_shared_use(principal, shared)),
        (None, None) => Ok(None),
    }
}

/// The caller of a request by a client whose scopes permit it.
///
/// # Errors
/// [`ErrorCode::Permission`], with the scope that is missing; `what` names the request.
fn permitted_caller(
    identity: &HttpIdentity,
    method: &Method,
    route: &str,
    what: &str,
) -> Result<Caller, HttpProblem> {
    let is_shutdown = route.ends_with("/api/v1/shutdown");
    if is_shutdown && !identity.may_stop {
        let message = "the token does not have the scope daemon:stop";
        return Err(HttpProblem::new(ErrorCode::Permission, message, None));
    }
    let caller = identity.rest_caller();
    if !route_access::writes(method, route) {
        return Ok(caller);
    }
    identity.access.check_write(what)?;
    Ok(identity.access.writer(caller))
}
