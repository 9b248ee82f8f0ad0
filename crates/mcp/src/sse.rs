//! One client of the HTTP+SSE transport of 2024-11-05: messages come in one by one, answers go out
//! in one stream. The HTTP part belongs to the router it is mounted in.
//!
//! Every queue is bounded: a client that does not read stops getting answers, then its messages are
//! no longer taken, and other clients are not affected.

use std::collections::HashSet;
use std::sync::Arc;

use futures_util::stream::{self, Stream};
use parking_lot::Mutex;
use rmcp::RoleServer;
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, JsonRpcMessage, RequestId, ServerJsonRpcMessage,
};
use rmcp::transport::IntoTransport;
use thiserror::Error;
use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, PollSender};
use tokio_util::task::TaskTracker;

use super::client::ConnectedClient;
use super::pending_deliveries::StreamState;
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
struct OpenRequests(Mutex<HashSet<RequestId>>);

/// Serves a newly connected client, on `tasks`, until `closed`; then its calls under way are
/// cancelled. `on_close` runs when none is left.
pub(crate) fn sse(
    mcp_state: McpState,
    client: ConnectedClient,
    closed: CancellationToken,
    tasks: &TaskTracker,
    on_close: impl Future<Output = ()> + Send + 'static,
) -> (SseInput, SseOutput) {
    let (input, mut incoming) = mpsc::channel(QUEUE_CAPACITY);
    let (outgoing, output) = mpsc::channel(QUEUE_CAPACITY);
    let open_requests = Arc::new(OpenRequests::default());
    let incoming = stream::poll_fn(move |cx| incoming.poll_recv(cx));
    let transport = (PollSender::new(outgoing), incoming);
    tasks.spawn(async move {
        let transport = <_ as IntoTransport<RoleServer, _, _>>::into_transport(transport);
        if let Err(error) = serve_transport(
            mcp_state,
            client,
            transport,
            StreamState::default(),
            closed.clone(),
        )
        .await
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
        let mut requests = self.0.lock();
        match message {
            JsonRpcMessage::Request(request) => {
                if requests.len() >= MAX_OPEN_REQUESTS {
                    return Err(SseError::Busy);
                }
                requests.insert(request.id.clone());
            }
            JsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) =
                    &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    requests.remove(id);
                }
            }
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => {}
        }
        Ok(())
    }

    fn on_outgoing(&self, message: &ServerJsonRpcMessage) {
        match message {
            JsonRpcMessage::Response(response) => drop(self.0.lock().remove(&response.id)),
            JsonRpcMessage::Error(error) => {
                if let Some(id) = &error.id {
                    self.0.lock().remove(id);
                }
            }
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => {}
        }
    }
}
