//! Requests and answers.

use std::path::PathBuf;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::header::HeaderName;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use ostler_model::ErrorCode;
use ostler_server::wire::Problem;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::net::UnixStream;
use tokio::task::JoinSet;

use super::attempts::{Attempts, is_leaving};
use crate::daemon::Launch;
use crate::error::CommandError;

/// The largest answer that is read at once; streams are read piece by piece.
const ANSWER_BYTES: usize = 256 * 1024 * 1024;
const JSON: &str = "application/json";
const OCTETS: &str = "application/octet-stream";

/// A client of one daemon. Every request has a connection of its own, so that a stream, a
/// signal and input never wait for each other.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    socket: PathBuf,
    launch: Option<Launch>,
}

/// What a request carries; cheap to clone.
#[derive(Debug, Clone)]
pub(crate) enum Body {
    /// Nothing.
    None,
    /// JSON.
    Json(Bytes),
    /// Bytes as they are.
    Octets(Bytes),
}

impl Body {
    /// A value as JSON.
    pub(crate) fn json<T: Serialize>(value: &T) -> Result<Self, CommandError> {
        serde_json::to_vec(value)
            .map(|json| Self::Json(json.into()))
            .map_err(|error| CommandError::new(ErrorCode::Internal, error.to_string()))
    }
}

/// An answer whose body is still to be read, with the connection it comes on.
#[derive(Debug)]
pub(crate) struct Answer {
    response: Response<Incoming>,
    connection: JoinSet<()>,
}

impl Client {
    /// A client of the daemon at `socket`, which is started with `launch` when it is not there.
    pub(crate) fn new(socket: PathBuf, launch: Option<Launch>) -> Self {
        Self { socket, launch }
    }

    /// Asks, and reads the answer.
    pub(crate) async fn call<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Body,
    ) -> Result<T, CommandError> {
        let bytes = self.bytes(method, path, body).await?;
        understood(path, &bytes)
    }

    /// Asks, and reads the answer as bytes.
    pub(crate) async fn bytes(
        &self,
        method: Method,
        path: &str,
        body: Body,
    ) -> Result<Bytes, CommandError> {
        self.ask(method, path, body).await?.bytes().await
    }

    /// As [`Client::call`], for a request that may arrive twice: repeated also when its answer
    /// was lost with the daemon.
    pub(crate) async fn call_repeatable<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Body,
    ) -> Result<T, CommandError> {
        let answer = self.repeat(method, path, body, true).await?;
        understood(path, &answer.bytes().await?)
    }

    /// As [`Client::call_repeatable`], for a request that says whether it is sent again: `body`
    /// makes it.
    pub(crate) async fn call_again<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        mut body: impl FnMut(bool) -> Result<Body, CommandError>,
    ) -> Result<T, CommandError> {
        let mut attempts = Attempts::new();
        let mut again = false;
        loop {
            let stream = self.connect().await?;
            let asked = match exchange(stream, method.clone(), path, body(again)?).await {
                Ok(answer) => answer.bytes().await,
                Err(error) => Err(error),
            };
            match asked {
                Err(error) if self.may_repeat(&error, true) => attempts.next(error)?,
                answer => return understood(path, &answer?),
            }
            again = true;
        }
    }

    /// Asks; a problem is an error, and any other answer is still to be read. A daemon that is
    /// about to end did nothing, and what only looks can be asked again: then the next one is.
    pub(crate) async fn ask(
        &self,
        method: Method,
        path: &str,
        body: Body,
    ) -> Result<Answer, CommandError> {
        let repeatable = method == Method::GET;
        self.repeat(method, path, body, repeatable).await
    }

    /// Asks one daemon after the other; `repeatable` where the answer may have been lost.
    async fn repeat(
        &self,
        method: Method,
        path: &str,
        body: Body,
        repeatable: bool,
    ) -> Result<Answer, CommandError> {
        let mut attempts = Attempts::new();
        loop {
            let stream = self.connect().await;
            let asked = match stream {
                Ok(stream) => exchange(stream, method.clone(), path, body.clone()).await,
                Err(error) => return Err(error),
            };
            match asked {
                Err(error) if self.may_repeat(&error, repeatable) => attempts.next(error)?,
                answer => return answer,
            }
        }
    }

    fn may_repeat(&self, error: &CommandError, repeatable: bool) -> bool {
        let lost = matches!(error, CommandError::Disconnected(_));
        self.launch.is_some() && (is_leaving(error) || (repeatable && lost))
    }

    /// A connection to the daemon.
    pub(super) async fn connect(&self) -> Result<UnixStream, CommandError> {
        let (socket, launch) = (self.socket.clone(), self.launch.clone());
        // Starting the daemon waits on a lock and a pipe, which blocks.
        let reach = move || crate::daemon::reach(&socket, launch.as_ref());
        let reached = tokio::task::spawn_blocking(reach).await;
        let stream = reached
            .map_err(|error| CommandError::new(ErrorCode::Internal, error.to_string()))??;
        stream
            .set_nonblocking(true)
            .and_then(|()| UnixStream::from_std(stream))
            .map_err(|error| CommandError::daemon(error.to_string()))
    }
}

impl Answer {
    /// The number in a header; 0 without one.
    pub(crate) fn number(&self, name: &HeaderName) -> u64 {
        let value = self.response.headers().get(name);
        let text = value.and_then(|value| value.to_str().ok());
        text.and_then(|text| text.parse().ok()).unwrap_or(0)
    }

    /// The whole body.
    pub(crate) async fn bytes(self) -> Result<Bytes, CommandError> {
        let body = Limited::new(self.response.into_body(), ANSWER_BYTES);
        let collected = body.collect().await.map_err(|error| broken(&*error))?;
        Ok(collected.to_bytes())
    }

    /// The body, to be read piece by piece, and the connection that feeds it.
    pub(crate) fn into_parts(self) -> (Incoming, JoinSet<()>) {
        (self.response.into_body(), self.connection)
    }
}

async fn exchange(
    stream: UnixStream,
    method: Method,
    path: &str,
    body: Body,
) -> Result<Answer, CommandError> {
    let answer = send(stream, request(method, path, body)?).await?;
    let status = answer.response.status();
    if status.is_success() {
        return Ok(answer);
    }
    Err(refusal(status, &answer.bytes().await?))
}

fn understood<T: DeserializeOwned>(path: &str, bytes: &[u8]) -> Result<T, CommandError> {
    serde_json::from_slice(bytes).map_err(|error| {
        CommandError::new(
            ErrorCode::Internal,
            format!("the daemon's answer to {path} is not understood: {error}"),
        )
        .with_hint("client and daemon may be of different versions: `ostler version`")
    })
}

fn request(method: Method, path: &str, body: Body) -> Result<Request<Full<Bytes>>, CommandError> {
    let (kind, bytes) = match body {
        Body::None => (None, Bytes::new()),
        Body::Json(json) => (Some(JSON), json),
        Body::Octets(bytes) => (Some(OCTETS), bytes),
    };
    let mut request = Request::builder()
        .method(method)
        .uri(path)
        .header("host", "ostler");
    if let Some(kind) = kind {
        request = request.header("content-type", kind);
    }
    request
        .body(Full::new(bytes))
        .map_err(|error| CommandError::value(format!("'{path}' cannot be asked for: {error}")))
}

async fn send(stream: UnixStream, request: Request<Full<Bytes>>) -> Result<Answer, CommandError> {
    let handshake = http1::handshake(TokioIo::new(stream)).await;
    let (mut sender, driver) = handshake.map_err(|error| broken(&error))?;
    let mut connection = JoinSet::new();
    // A broken connection shows in the answer.
    connection.spawn(async move { drop(driver.await) });
    let response = sender.send_request(request).await;
    let response = response.map_err(|error| broken(&error))?;
    Ok(Answer {
        response,
        connection,
    })
}

/// What an answer that is no success says.
pub(super) fn refusal(status: StatusCode, body: &[u8]) -> CommandError {
    serde_json::from_slice::<Problem>(body).map_or_else(
        |_| {
            let text = String::from_utf8_lossy(body);
            CommandError::new(
                ErrorCode::Internal,
                format!("the daemon answered {status}: {text}"),
            )
        },
        CommandError::from,
    )
}

/// The connection broke: the daemon ended or was killed.
pub(crate) fn broken(error: &dyn std::error::Error) -> CommandError {
    CommandError::Disconnected(error.to_string())
}
