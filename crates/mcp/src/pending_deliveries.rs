//! When an id counts as published: at the moment the response that contains it is passed to the
//! stream, not before. Until then cancelling the request also ends the executions it started,
//! however close to its response the cancellation comes.

use std::borrow::Cow;
use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;

use ostler_engine::{Error, StartGuard};
use ostler_interface::error::ApiError;
use ostler_model::ExecutionId;
use parking_lot::Mutex;
use rmcp::RoleServer;
use rmcp::model::{JsonRpcMessage, RequestId, ServerResult};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::client::ConnectedClient;
use super::reply::ToolReply;
use super::state::McpState;
use super::to_rmcp::to_call_result;

/// Executions named in answers that are on their way to one stream.
#[derive(Debug, Clone, Default)]
pub(super) struct PendingDeliveries(Arc<Mutex<HashMap<RequestId, Vec<StartGuard>>>>);

impl PendingDeliveries {
    /// The answer to this request, on its way, names these.
    pub(super) fn add(&self, request: &RequestId, start_guards: Vec<StartGuard>) {
        self.0.lock().insert(request.clone(), start_guards);
    }

    /// The answer to this request will never be sent: the executions it names end.
    pub(super) fn revoke(&self, request: &RequestId) {
        // Dropped outside the lock.
        let _ended = self.0.lock().remove(request);
    }

    /// This message is being sent: returns the ids it publishes.
    ///
    /// # Errors
    /// [`Error::Closing`] where the engine shuts down and stops one of them.
    fn disclose_for(
        &self,
        message: &TxJsonRpcMessage<RoleServer>,
    ) -> Result<Vec<ExecutionId>, Error> {
        match message {
            JsonRpcMessage::Response(response) => {
                let start_guards = self.0.lock().remove(&response.id).unwrap_or_default();
                let disclose = |start_guard: StartGuard| {
                    let id = start_guard.id();
                    start_guard.detach().map(|()| id)
                };
                start_guards.into_iter().map(disclose).collect()
            }
            JsonRpcMessage::Error(error) => {
                if let Some(request) = &error.id {
                    self.revoke(request);
                }
                Ok(Vec::new())
            }
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => Ok(Vec::new()),
        }
    }
}

/// What the handler and the transport of one stream share.
#[derive(Debug, Clone, Default)]
pub(super) struct StreamState {
    /// Calls under way.
    pub(super) calls: TaskTracker,
    pub(super) pending: PendingDeliveries,
    /// Cancelled when the client has closed its side, so that whatever waits for that ends at once
    /// (the library reports it only after its drain time).
    pub(super) input_closed: CancellationToken,
    /// Set where calls are answered by themselves once this is cancelled, which it is when the daemon
    /// shuts down. Over stdio the log of the connection has what is to be answered.
    pub(super) shutdown: Option<CancellationToken>,
}

/// A transport that publishes the ids in its answers, and reports when the client has left.
#[derive(Debug)]
pub(super) struct DeliveryTransport<T> {
    transport: T,
    stream: StreamState,
    state: McpState,
    client: Arc<ConnectedClient>,
}

impl<T> DeliveryTransport<T> {
    pub(super) fn new(
        transport: T,
        line: StreamState,
        state: McpState,
        client: Arc<ConnectedClient>,
    ) -> Self {
        Self {
            transport,
            stream: line,
            state,
            client,
        }
    }

    /// The message to send: this one, or an error where the executions that it names are stopped,
    /// because the engine shuts down.
    fn before_send(&self, message: TxJsonRpcMessage<RoleServer>) -> TxJsonRpcMessage<RoleServer> {
        match (self.stream.pending.disclose_for(&message), message) {
            (Err(error), JsonRpcMessage::Response(response)) => {
                let reply = ToolReply::from(ApiError::from(error));
                let result = to_call_result(reply, None, self.state.options().structured);
                let result = ServerResult::CallToolResult(result);
                JsonRpcMessage::response(result, response.id)
            }
            (Ok(published), message) => {
                self.notify_published(published);
                message
            }
            (Err(_), message) => message,
        }
    }

    fn notify_published(&self, published: Vec<ExecutionId>) {
        if published.is_empty() {
            return;
        }
        let (state, client) = (self.state.clone(), Arc::clone(&self.client));
        self.stream.calls.spawn(async move {
            for id in published {
                state.notifications().published(&client.caller, id).await;
            }
        });
    }
}

impl<T: Transport<RoleServer>> Transport<RoleServer> for DeliveryTransport<T> {
    type Error = T::Error;

    fn name() -> Cow<'static, str> {
        T::name()
    }

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let item = self.before_send(item);
        self.transport.send(item)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        let message = self.transport.receive().await;
        if message.is_none() {
            self.stream.input_closed.cancel();
        }
        message
    }

    fn close(&mut self) -> impl Future<Output = Result<(), Self::Error>> + Send {
        self.transport.close()
    }
}
