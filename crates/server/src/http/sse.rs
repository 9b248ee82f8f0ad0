//! The HTTP+SSE transport of 2024-11-05, for clients that know no other: `GET /sse` opens the
//! stream of one client and names where its messages go, `POST /messages?sessionId=…`.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

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
use ostler_model::owner::Principal;
use ostler_model::{ErrorCode, SessionName};
use serde::Deserialize;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::limits::{BODY_BYTES, too_large};
use super::sessions::{Sessions, Stay};
use super::table::{Key, Place};
use super::visit::{self, Words, fronted, named};
use crate::mcp::{Client, Desk, FrontContext, SseError, SseInput, SseOutput, sse};
use crate::wire::Problem;

/// The most clients connected at once.
const CLIENTS: usize = 256;

/// What every client is served with. Cheap to clone.
#[derive(Debug, Clone)]
struct Lounge(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    desk: Desk,
    sessions: Sessions,
    front: Arc<FrontContext>,
    prefix: String,
    shutdown: CancellationToken,
    tasks: TaskTracker,
    clients: Mutex<HashMap<String, Seat>>,
}

/// A connected client.
#[derive(Debug, Clone)]
struct Seat {
    principal: Principal,
    input: SseInput,
}

/// A client's place, until its stream is dropped.
#[derive(Debug)]
struct Seated {
    lounge: Lounge,
    id: String,
    closed: CancellationToken,
    _stay: Stay,
}

/// Which connection a message is for.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct For {
    session_id: String,
}

/// Its routes, for clients of `desk`. The rest: what paths begin with, what closes every
/// stream, and what must be done before the process ends.
pub(super) fn routes(
    desk: Desk,
    sessions: Sessions,
    front: Arc<FrontContext>,
    (prefix, shutdown, tasks): (String, CancellationToken, TaskTracker),
) -> Router {
    let lounge = Lounge(Arc::new(Shared {
        desk,
        sessions,
        front,
        prefix,
        shutdown,
        tasks,
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
        .route("/messages", post(message))
        .with_state(lounge)
}

/// `GET /sse`.
async fn open(
    State(lounge): State<Lounge>,
    Path(words): Path<Words>,
    request: Request,
) -> Result<Response, Problem> {
    let (seated, output) = lounge.seat(&words, &request.into_parts().0)?;
    let endpoint = format!("{}/messages?sessionId={}", lounge.0.prefix, seated.id);
    let first = Event::default().event("endpoint").data(endpoint);
    let message = |json| Event::default().event("message").data(json);
    let closed = seated.closed.clone().cancelled_owned();
    let events = stream::once(async move { first })
        .chain(output.into_stream().map(message))
        .take_until(closed)
        .map(move |event| {
            let _seated = &seated;
            Ok::<_, Infallible>(event)
        });
    Ok(Sse::new(events)
        .keep_alive(KeepAlive::default())
        .into_response())
}

/// A session of its own ends with its stream, unless it goes on with the next daemon.
async fn ended(lounge: Lounge, key: Key, own: bool) {
    if !own || lounge.0.shutdown.is_cancelled() {
        return;
    }
    if let Err(error) = lounge.0.sessions.end(&key).await {
        tracing::warn!(session = %key.session, %error, "the session did not end cleanly");
    }
}

/// `POST /messages?sessionId=…`.
async fn message(
    State(lounge): State<Lounge>,
    Query(whom): Query<For>,
    request: Request,
) -> Result<Response, Problem> {
    let (parts, body) = request.into_parts();
    let identity = visit::identity(&parts)?;
    let seat = lounge.clients().get(&whom.session_id).cloned();
    let seat = seat.filter(|seat| seat.principal == identity.principal);
    let seat = seat.ok_or_else(|| visit::no_session().with_hint("open another with GET /sse"))?;
    let json = to_bytes(body, BODY_BYTES).await.map_err(|_| too_large())?;
    seat.input.take(&json).await.map_err(refused)?;
    Ok((StatusCode::ACCEPTED, Body::from("Accepted")).into_response())
}

fn refused(error: SseError) -> Problem {
    let message = error.to_string();
    match error {
        SseError::Message(_) => Problem::value(message).with_status(400),
        SseError::Busy => Problem::new(ErrorCode::QuotaExceeded, message, None)
            .with_hint("read the answers from the stream"),
        SseError::Closed => Problem::new(ErrorCode::SessionNotFound, message, None),
    }
}

impl Lounge {
    /// Seats a client, until its stream is dropped.
    fn seat(&self, words: &Words, parts: &Parts) -> Result<(Seated, SseOutput), Problem> {
        let identity = visit::identity(parts)?;
        let name = named(words, &parts.headers)?;
        let front = fronted(words, &self.0.front)?;
        if self.clients().len() >= CLIENTS {
            let message = format!("{CLIENTS} clients are connected already");
            return Err(Problem::new(ErrorCode::QuotaExceeded, message, None));
        }
        let id = uuid::Uuid::new_v4().simple().to_string();
        let own = name.is_none();
        let session = name.unwrap_or_else(|| SessionName(format!("sse-{id}")));
        let principal = identity.principal.clone();
        let key = Key {
            principal: principal.clone(),
            session: session.clone(),
        };
        self.0.sessions.admit(&key, false)?;
        let seated = Seated {
            lounge: self.clone(),
            id: id.clone(),
            closed: self.0.shutdown.child_token(),
            _stay: self.0.sessions.enter(vec![Place::Session(key.clone())]),
        };
        let caller = identity.caller(session);
        let client = Client { caller, front };
        let after = ended(self.clone(), key, own);
        let closed = seated.closed.clone();
        let (input, output) = sse(self.0.desk.clone(), client, closed, &self.0.tasks, after);
        self.clients().insert(id, Seat { principal, input });
        Ok((seated, output))
    }

    fn clients(&self) -> MutexGuard<'_, HashMap<String, Seat>> {
        // Every change is whole.
        self.0
            .clients
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Seated {
    fn drop(&mut self) {
        self.closed.cancel();
        self.lounge.clients().remove(&self.id);
    }
}
