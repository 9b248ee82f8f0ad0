//! HTTP requests to the daemon, and their responses.

use std::path::PathBuf;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::header::{HeaderMap, HeaderName};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use ostler_api::Problem;
use ostler_model::ErrorCode;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::net::UnixStream;
use tokio::task::JoinSet;

use super::retry::{RetryLimit, is_daemon_exiting};
use super::silence::SilenceNote;
use crate::daemon::DaemonLauncher;
use crate::error::CommandError;

/// The largest response in bytes that is read at once; streams are read incrementally.
const RESPONSE_BYTES: usize = 256 * 1024 * 1024;
const JSON: &str = "application/json";
const OCTETS: &str = "application/octet-stream";

/// A client of one daemon. Every request has a connection of its own, so that a stream, a signal
/// and input never wait for each other.
#[derive(Debug, Clone)]
pub(crate) struct DaemonClient {
    socket: PathBuf,
    launch: Option<DaemonLauncher>,
    /// Whether a note is printed where the daemon does not answer.
    prints_silence_note: bool,
}

/// The body of a request; cheap to clone.
#[derive(Debug, Clone)]
pub(crate) enum RequestBody {
    None,
    Json(Bytes),
    /// Raw bytes (`application/octet-stream`).
    Octets(Bytes),
}

impl RequestBody {
    /// Serializes a value as JSON.
    pub(crate) fn json<T: Serialize>(value: &T) -> Result<Self, CommandError> {
        serde_json::to_vec(value)
            .map(|json| Self::Json(json.into()))
            .map_err(|error| CommandError::new(ErrorCode::Internal, error.to_string()))
    }
}

/// A response whose body is not read yet, with its connection.
#[derive(Debug)]
pub(crate) struct DaemonResponse {
    response: Response<Incoming>,
    connection: JoinSet<()>,
}

impl DaemonClient {
    /// A client of the daemon at `socket`, which is started with `launch` if it is not running.
    pub(crate) fn new(socket: PathBuf, launch: Option<DaemonLauncher>) -> Self {
        Self {
            socket,
            launch,
            prints_silence_note: true,
        }
    }

    /// A client of the same daemon, which starts none.
    pub(crate) fn without_launch(&self) -> Self {
        Self {
            launch: None,
            ..self.clone()
        }
    }

    /// A client of the same daemon, which prints no note where it does not answer.
    pub(super) fn without_silence_note(&self) -> Self {
        Self {
            prints_silence_note: false,
            ..self.clone()
        }
    }

    /// Sends a request and deserializes the response.
    pub(crate) async fn call<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: RequestBody,
    ) -> Result<T, CommandError> {
        let bytes = self.call_bytes(method, path, body).await?;
        decode(path, &bytes)
    }

    /// Sends a request and returns the response's bytes.
    pub(crate) async fn call_bytes(
        &self,
        method: Method,
        path: &str,
        body: RequestBody,
    ) -> Result<Bytes, CommandError> {
        self.request(method, path, body).await?.into_bytes().await
    }

    /// As [`DaemonClient::call`], for an idempotent request: repeated also when the response was
    /// lost with the daemon.
    pub(crate) async fn call_idempotent<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: RequestBody,
    ) -> Result<T, CommandError> {
        let response = self.request_with_retry(method, path, body, true).await?;
        decode(path, &response.into_bytes().await?)
    }

    /// As [`DaemonClient::call_idempotent`], for a request that contains whether it is a retry:
    /// `into_body` builds its body.
    pub(crate) async fn call_retrying<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        mut body: impl FnMut(bool) -> Result<RequestBody, CommandError>,
    ) -> Result<T, CommandError> {
        let mut attempts = RetryLimit::new();
        let mut is_retry = false;
        loop {
            let stream = self.connect().await?;
            let body = body(is_retry)?;
            let result = match self.exchange(stream, method.clone(), path, body).await {
                Ok(answer) => answer.into_bytes().await,
                Err(error) => Err(error),
            };
            match result {
                Err(error) if self.is_retryable(&error, true) => attempts.allow_retry(error)?,
                answer => return decode(path, &answer?),
            }
            is_retry = true;
        }
    }

    /// Sends a request; a problem document is an error, any other response is still to be read. A
    /// request that a daemon did not process because it is about to end, and a safe request, is
    /// sent to the next one.
    pub(crate) async fn request(
        &self,
        method: Method,
        path: &str,
        body: RequestBody,
    ) -> Result<DaemonResponse, CommandError> {
        let is_idempotent = method == Method::GET;
        self.request_with_retry(method, path, body, is_idempotent)
            .await
    }

    /// Sends a request to one daemon after the other; `is_idempotent` if the response may be lost.
    async fn request_with_retry(
        &self,
        method: Method,
        path: &str,
        body: RequestBody,
        is_idempotent: bool,
    ) -> Result<DaemonResponse, CommandError> {
        let mut attempts = RetryLimit::new();
        loop {
            let stream = self.connect().await;
            let result = match stream {
                Ok(stream) => {
                    self.exchange(stream, method.clone(), path, body.clone())
                        .await
                }
                Err(error) => return Err(error),
            };
            match result {
                Err(error) if self.is_retryable(&error, is_idempotent) => {
                    attempts.allow_retry(error)?;
                }
                answer => return answer,
            }
        }
    }

    async fn exchange(
        &self,
        stream: UnixStream,
        method: Method,
        path: &str,
        body: RequestBody,
    ) -> Result<DaemonResponse, CommandError> {
        let request = build_request(method, path, body)?;
        let note = SilenceNote::new(&self.socket, &stream);
        let response = tokio::select! {
            biased;
            response = send(stream, request) => response?,
            never = note.print_when_silent(), if self.prints_silence_note => match never {},
        };
        let status = response.response.status();
        if status.is_success() {
            return Ok(response);
        }
        Err(error_from_response(status, &response.into_bytes().await?))
    }

    fn is_retryable(&self, error: &CommandError, is_idempotent: bool) -> bool {
        let lost = matches!(error, CommandError::Disconnected(_));
        self.launch.is_some() && (is_daemon_exiting(error) || (is_idempotent && lost))
    }

    /// Connects to the daemon.
    pub(super) async fn connect(&self) -> Result<UnixStream, CommandError> {
        let (socket, launch) = (self.socket.clone(), self.launch.clone());
        // Starting the daemon waits for a lock and a pipe, which blocks.
        let connect_daemon = move || crate::daemon::connect_or_start(&socket, launch.as_ref());
        let connected = tokio::task::spawn_blocking(connect_daemon).await;
        let stream = connected
            .map_err(|error| CommandError::new(ErrorCode::Internal, error.to_string()))??;
        stream
            .set_nonblocking(true)
            .and_then(|()| UnixStream::from_std(stream))
            .map_err(|error| CommandError::daemon(error.to_string()))
    }
}

impl DaemonResponse {
    /// The number in a header; 0 without one.
    pub(crate) fn header_number(&self, name: &HeaderName) -> u64 {
        number_in(self.response.headers(), name).unwrap_or(0)
    }

    pub(crate) async fn into_bytes(self) -> Result<Bytes, CommandError> {
        let body = Limited::new(self.response.into_body(), RESPONSE_BYTES);
        let collected = body
            .collect()
            .await
            .map_err(|error| connection_error(&*error))?;
        Ok(collected.to_bytes())
    }

    /// The body, to be read incrementally, and the connection that feeds it.
    pub(crate) fn into_parts(self) -> (Incoming, JoinSet<()>) {
        (self.response.into_body(), self.connection)
    }
}

/// The number in a field of a header or a trailer; none without one.
pub(crate) fn number_in(fields: &HeaderMap, name: &HeaderName) -> Option<u64> {
    fields.get(name)?.to_str().ok()?.parse().ok()
}

fn decode<T: DeserializeOwned>(path: &str, bytes: &[u8]) -> Result<T, CommandError> {
    serde_json::from_slice(bytes).map_err(|error| {
        CommandError::new(
            ErrorCode::Internal,
            format!("the daemon's answer to {path} is not understood: {error}"),
        )
        .with_hint("client and daemon may be of different versions: `ostler version`")
    })
}

pub(super) fn build_request(
    method: Method,
    path: &str,
    body: RequestBody,
) -> Result<Request<Full<Bytes>>, CommandError> {
    let (content_type, bytes) = match body {
        RequestBody::None => (None, Bytes::new()),
        RequestBody::Json(json) => (Some(JSON), json),
        RequestBody::Octets(bytes) => (Some(OCTETS), bytes),
    };
    let mut request = Request::builder()
        .method(method)
        .uri(path)
        .header("host", "ostler")
        .header("te", "trailers");
    if let Some(kind) = content_type {
        request = request.header("content-type", kind);
    }
    request
        .body(Full::new(bytes))
        .map_err(|error| CommandError::value(format!("'{path}' cannot be asked for: {error}")))
}

pub(super) async fn send(
    stream: UnixStream,
    request: Request<Full<Bytes>>,
) -> Result<DaemonResponse, CommandError> {
    let handshake = http1::handshake(TokioIo::new(stream)).await;
    let (mut sender, driver) = handshake.map_err(|error| connection_error(&error))?;
    let mut connection = JoinSet::new();
    // A broken connection shows in the response.
    connection.spawn(async move { drop(driver.await) });
    let response = sender.send_request(request).await;
    let response = response.map_err(|error| connection_error(&error))?;
    Ok(DaemonResponse {
        response,
        connection,
    })
}

/// The error of a response that is not a success.
pub(super) fn error_from_response(status: StatusCode, body: &[u8]) -> CommandError {
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

/// The error for a broken connection: the daemon ended or was killed.
pub(crate) fn connection_error(error: &dyn std::error::Error) -> CommandError {
    CommandError::Disconnected(error.to_string())
}
