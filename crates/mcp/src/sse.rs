//! One client of the HTTP+SSE transport of 2024-11-05: messages come in one by one, answers go out
//! in one stream. The HTTP part belongs to the router it is mounted in.
//!
//! Every queue is bounded: a client that does not read stops getting answers, then its messages are
//! no longer taken, and other clients are not affected.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{self, Stream};
use rmcp::RoleServer;
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, JsonRpcMessage, RequestId, ServerJsonRpcMessage,
};
use rmcp::transport::IntoTransport;
use thiserror::Error;
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, PollSender};
use tokio_util::task::TaskTracker;

use super::client::ConnectedClient;
use super::pending_deliveries::StreamState;
use super::session_hooks::SHUTDOWN_ANSWERS_MS;
use super::state::McpState;
use super::stdio::serve_transport;

/// Capacity of the queues of messages in and out.
const QUEUE_CAPACITY: usize = 16;
/// The most requests one client may have under way.
const MAX_OPEN_REQUESTS: usize = 64;

/// The input of a connected client. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct SseInput {
    messages: mpsc::Sender<ClientJsonRpcMessage>,
    open_requests: Arc<OpenRequests>,
}

/// The output to a client, in order.
#[derive(Debug)]
pub(crate) struct SseOutput {
    messages: mpsc::Receiver<ServerJsonRpcMessage>,
    open_requests: Arc<OpenRequests>,
}

/// Why a message was not taken.
#[derive(Debug, Error)]
pub(crate) enum SseError {
    /// It is not a valid message.
    #[error("not a JSON-RPC message of MCP: {0}")]
    Message(serde_json::Error),
    /// The client reads no answers.
    #[error("{MAX_OPEN_REQUESTS} requests are under way already")]
    Busy,
    /// The output stream is gone.
    #[error("the stream of this connection is closed")]
    Closed,
}

/// Requests that have no answer yet.
#[derive(Debug, Default)]
struct OpenRequests(watch::Sender<HashSet<RequestId>>);

/// What ends a client's connection.
#[derive(Debug, Clone)]
pub(crate) struct SseTokens {
    /// Cancelled when the client is gone: its calls under way are cancelled.
    pub(crate) closed: CancellationToken,
    /// Cancelled when the daemon shuts down: its calls are answered, and then it is closed.
    pub(crate) shutdown: CancellationToken,
}

/// Serves a newly connected client, on `tasks`, until one of `tokens` is cancelled. `on_close` runs
/// when none of its calls is left.
pub(crate) fn sse(
    mcp_state: McpState,
    client: ConnectedClient,
    tokens: SseTokens,
    tasks: &TaskTracker,
    on_close: impl Future<Output = ()> + Send + 'static,
) -> (SseInput, SseOutput) {
    let SseTokens { closed, shutdown } = tokens;
    let (input, mut incoming) = mpsc::channel(QUEUE_CAPACITY);
    let (outgoing, output) = mpsc::channel(QUEUE_CAPACITY);
    let open_requests = Arc::new(OpenRequests::default());
    let incoming = stream::poll_fn(move |cx| incoming.poll_recv(cx));
    let transport = (PollSender::new(outgoing), incoming);
    let (unanswered, connection) = (Arc::clone(&open_requests), closed.clone());
    let stream = StreamState {
        shutdown: Some(shutdown.clone()),
        ..StreamState::default()
    };
    tasks.spawn(async move {
        tokio::select! {
            () = connection.cancelled() => {}
            () = shutdown.cancelled() => {
                unanswered.none_left().await;
                connection.cancel();
            }
        }
    });
    tasks.spawn(async move {
        let transport = <_ as IntoTransport<RoleServer, _, _>>::into_transport(transport);
        if let Err(error) =
            serve_transport(mcp_state, client, transport, stream, closed.clone()).await
        {
            tracing::debug!(%error, "a client came to no understanding");
        }
        closed.cancel();
        on_close.await;
    });
    let input = SseInput {
        messages: input,
        open_requests: Arc::clone(&open_requests),
    };
    let output = SseOutput {
        messages: output,
        open_requests,
    };
    (input, output)
}

impl SseInput {
    /// Accepts one message, as JSON.
    ///
    /// # Errors
    /// When it is not a valid message, or cannot be answered.
    pub(crate) async fn send(&self, json: &[u8]) -> Result<(), SseError> {
        let message = serde_json::from_slice(json).map_err(SseError::Message)?;
        self.open_requests.on_incoming(&message)?;
        self.messages
            .send(message)
            .await
            .map_err(|_| SseError::Closed)
    }
}

impl SseOutput {
    /// Answers and notifications as JSON, until the client is gone.
    pub(crate) fn into_stream(self) -> impl Stream<Item = String> + Send {
        stream::unfold(self, |mut output| async move {
            let message = output.messages.recv().await?;
            output.open_requests.on_outgoing(&message);
            let json = serde_json::to_string(&message).unwrap_or_default();
            Some((json, output))
        })
    }
}

impl OpenRequests {
    fn on_incoming(&self, message: &ClientJsonRpcMessage) -> Result<(), SseError> {
        match message {
            JsonRpcMessage::Request(request) => {
                let is_taken = self.0.send_if_modified(|requests| {
                    let is_taken = requests.len() < MAX_OPEN_REQUESTS;
                    is_taken && requests.insert(request.id.clone())
                });
                if !is_taken && !self.0.borrow().contains(&request.id) {
                    return Err(SseError::Busy);
                }
            }
            JsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) =
                    &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    self.end(id);
                }
            }
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => {}
        }
        Ok(())
    }

    fn on_outgoing(&self, message: &ServerJsonRpcMessage) {
        match message {
            JsonRpcMessage::Response(response) => self.end(&response.id),
            JsonRpcMessage::Error(error) => {
                if let Some(id) = &error.id {
                    self.end(id);
                }
            }
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => {}
        }
    }

    fn end(&self, id: &RequestId) {
        self.0.send_if_modified(|requests| requests.remove(id));
    }

    /// Resolves when all are answered, or the client does not read.
    async fn none_left(&self) {
        let mut requests = self.0.subscribe();
        let limit = Duration::from_millis(SHUTDOWN_ANSWERS_MS);
        let none_left = timeout(limit, requests.wait_for(HashSet::is_empty))
            .await
            .is_ok();
        if !none_left {
            tracing::info!("a client did not read the answers to its last requests");
        }
    }
}
