//! When an id counts as published: at the moment the response that contains it is passed to the
//! stream, not before. Until then cancelling the request also ends the executions it started,
//! however close to its response the cancellation comes.

use std::borrow::Cow;
use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;

use ostler_engine::StartGuard;
use ostler_model::ExecutionId;
use parking_lot::Mutex;
use rmcp::RoleServer;
use rmcp::model::{JsonRpcMessage, RequestId};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::client::ConnectedClient;
use super::state::McpState;

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
    fn release_for(&self, message: &TxJsonRpcMessage<RoleServer>) -> Vec<ExecutionId> {
        match message {
            JsonRpcMessage::Response(response) => {
                let start_guards = self.0.lock().remove(&response.id).unwrap_or_default();
                let named = start_guards.into_iter();
                named
                    .map(|start_guard| {
                        let id = start_guard.id();
                        start_guard.detach();
                        id
                    })
                    .collect()
            }
            JsonRpcMessage::Error(error) => {
                if let Some(request) = &error.id {
                    self.revoke(request);
                }
                Vec::new()
            }
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => Vec::new(),
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

    fn on_sent(&self, message: &TxJsonRpcMessage<RoleServer>) {
        let published = self.stream.pending.release_for(message);
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
        self.on_sent(&item);
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
