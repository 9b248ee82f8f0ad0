//! The HTTP+SSE transport of 2024-11-05, for clients that support no other: `GET /sse` opens the
//! stream of one client and names the URL for its messages, `POST /messages?sessionId=…`.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Path, Query, Request, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use futures_util::StreamExt as _;
use futures_util::stream;
use ostler_interface::http::{BODY_BYTES, HttpProblem, identity, too_large};
use ostler_interface::project_access::ProjectAccess;
use ostler_model::owner::Principal;
use ostler_model::{ErrorCode, SessionName};
use parking_lot::Mutex;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::request_target::{self, PathParams, connected_client, named_session, path_context};
use super::session_prefix::SSE_PREFIX;
use super::session_table::{SessionKey, UsageKey};
use super::sessions::{HttpSessions, SessionUse};
use crate::client::ClientContext;
use crate::sse::{SseError, SseInput, SseOutput, SseTokens, sse};
use crate::state::McpState;

/// The most clients connected at once.
const CLIENTS: usize = 256;
/// The most clients of one principal connected at once, so that others find room.
const CLIENTS_PER_PRINCIPAL: usize = CLIENTS / 4;

/// State shared by every client. Cheap to clone.
#[derive(Debug, Clone)]
struct SseState(Arc<SseInner>);

#[derive(Debug)]
struct SseInner {
    mcp_state: McpState,
    sessions: HttpSessions,
    client_context: Arc<ClientContext>,
    prefix: String,
    shutdown: CancellationToken,
    tasks: TaskTracker,
    clients: Mutex<HashMap<String, SseClient>>,
}

/// A connected client.
#[derive(Debug, Clone)]
struct SseClient {
    principal: Principal,
    access: ProjectAccess,
    input: SseInput,
}

/// A slot among [`CLIENTS`], until the stream is dropped.
#[derive(Debug)]
struct SseClientGuard {
    state: SseState,
    id: String,
    closed: CancellationToken,
    _session_use: SessionUse,
}

/// The connection that a message is for.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct MessageQuery {
    session_id: String,
}

/// What this transport is made of.
pub(super) struct SseParts {
    pub(super) mcp_state: McpState,
    pub(super) sessions: HttpSessions,
    pub(super) client_context: Arc<ClientContext>,
    /// The prefix of its paths.
    pub(super) prefix: String,
    /// Closes every stream, once its calls are answered.
    pub(super) shutdown: CancellationToken,
    /// Work to await before the process ends.
    pub(super) tasks: TaskTracker,
}

/// The routes of this transport.
pub(super) fn routes(parts: SseParts) -> Router {
    let state = SseState(Arc::new(SseInner {
        mcp_state: parts.mcp_state,
        sessions: parts.sessions,
        client_context: parts.client_context,
        prefix: parts.prefix,
        shutdown: parts.shutdown,
        tasks: parts.tasks,
        clients: Mutex::default(),
    }));
    let paths = [
        "/sse",
        "/sse/p/{profile}",
        "/sse/s/{name}",
        "/sse/s/{name}/p/{profile}",
    ];
    paths
        .into_iter()
        .fold(Router::new(), |routes, path| routes.route(path, get(open)))
        .route("/messages", post(post_message))
        .with_state(state)
}

/// Handles `GET /sse`.
async fn open(
    State(state): State<SseState>,
    Path(params): Path<PathParams>,
    request: Request,
) -> Result<Response, HttpProblem> {
    let (client, output) = state.connect(&params, &request.into_parts().0)?;
    let endpoint = format!("{}/messages?sessionId={}", state.0.prefix, client.id);
    let first = Event::default().event("endpoint").data(endpoint);
    let message = |json| Event::default().event("message").data(json);
    let closed = client.closed.clone().cancelled_owned();
    let events = stream::once(async move { first })
        .chain(output.into_stream().map(message))
        .take_until(closed)
        .map(move |event| {
            let _client = &client;
            Ok::<_, Infallible>(event)
        });
    Ok(Sse::new(events)
        .keep_alive(KeepAlive::default())
        .into_response())
}

/// A session of its own ends with its stream, unless it continues with the next daemon.
async fn end_session(state: SseState, key: SessionKey, is_own: bool) {
    if !is_own || state.0.shutdown.is_cancelled() {
        return;
    }
    if let Err(error) = state.0.sessions.end(&key).await {
        tracing::warn!(session = %key.session, %error, "the session did not end cleanly");
    }
}

/// Handles `POST /messages?sessionId=…`.
async fn post_message(
    State(state): State<SseState>,
    Query(query): Query<MessageQuery>,
    request: Request,
) -> Result<Response, HttpProblem> {
    let (parts, body) = request.into_parts();
    let identity = identity(&parts)?;
    let client = state.0.clients.lock().get(&query.session_id).cloned();
    let client = client
        .filter(|seat| seat.principal == identity.principal && seat.access == identity.access);
    let client = client
        .ok_or_else(|| request_target::no_session().with_hint("open another with GET /sse"))?;
    let json = to_bytes(body, BODY_BYTES).await.map_err(|_| too_large())?;
    client.input.send(&json).await.map_err(sse_problem)?;
    Ok((StatusCode::ACCEPTED, Body::from("Accepted")).into_response())
}

fn sse_problem(error: SseError) -> HttpProblem {
    let message = error.to_string();
    match error {
        SseError::Message(_) => HttpProblem::value(message).with_status(400),
        SseError::Busy => HttpProblem::new(ErrorCode::QuotaExceeded, message, None)
            .with_hint("read the answers from the stream"),
        SseError::Closed => HttpProblem::new(ErrorCode::SessionNotFound, message, None),
    }
}

impl SseState {
    /// Checks that another client of this principal may connect.
    ///
    /// # Errors
    /// When all, or all of the principal, are connected already.
    fn check_room(&self, principal: &Principal) -> Result<(), HttpProblem> {
        let clients = self.0.clients.lock();
        let own = clients.values().filter(|it| it.principal == *principal);
        let message = if own.count() >= CLIENTS_PER_PRINCIPAL {
            format!(
                "{CLIENTS_PER_PRINCIPAL} clients of this token are connected, all it may have at once"
            )
        } else if clients.len() >= CLIENTS {
            format!("{CLIENTS} clients are connected already")
        } else {
            return Ok(());
        };
        let problem = HttpProblem::new(ErrorCode::QuotaExceeded, message, None);
        Err(problem.with_hint("end streams, or use POST /mcp"))
    }

    /// Connects a client, until its stream is dropped.
    fn connect(
        &self,
        params: &PathParams,
        parts: &Parts,
    ) -> Result<(SseClientGuard, SseOutput), HttpProblem> {
        let identity = identity(parts)?;
        let name = named_session(params, &parts.headers)?;
        let client_context = path_context(params, &self.0.client_context)?;
        self.check_room(&identity.principal)?;
        let id = uuid::Uuid::new_v4().simple().to_string();
        let own = name.is_none();
        let session = name.unwrap_or_else(|| SessionName(format!("{SSE_PREFIX}{id}")));
        let principal = identity.principal.clone();
        let key = SessionKey {
            principal: principal.clone(),
            session: session.clone(),
        };
        self.0.sessions.admit(&key, false)?;
        let guard = SseClientGuard {
            state: self.clone(),
            id: id.clone(),
            closed: CancellationToken::new(),
            _session_use: self
                .0
                .sessions
                .begin_use(vec![UsageKey::Session(key.clone())]),
        };
        let caller = identity.caller(session);
        let client = connected_client(&identity, caller, client_context);
        let cleanup = end_session(self.clone(), key, own);
        let tokens = SseTokens {
            closed: guard.closed.clone(),
            shutdown: self.0.shutdown.clone(),
        };
        let (input, output) = sse(
            self.0.mcp_state.clone(),
            client,
            tokens,
            &self.0.tasks,
            cleanup,
        );
        self.0.clients.lock().insert(
            id,
            SseClient {
                principal,
                access: identity.access,
                input,
            },
        );
        Ok((guard, output))
    }
}

impl Drop for SseClientGuard {
    fn drop(&mut self) {
        self.closed.cancel();
        self.state.0.clients.lock().remove(&self.id);
    }
}
