//! When an id counts as given out (F7): at the moment the answer that names it is handed to
//! the stream, not before. Until then a cancelled request takes what it began with it, however
//! close to its answer the cancellation comes.

use std::borrow::Cow;
use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ostler_engine::Begun;
use ostler_model::ExecutionId;
use rmcp::RoleServer;
use rmcp::model::{JsonRpcMessage, RequestId};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::context::Client;
use super::desk::Desk;

/// Executions named in answers that are on their way to one stream.
#[derive(Debug, Clone, Default)]
pub(super) struct Leases(Arc<Mutex<HashMap<RequestId, Vec<Begun>>>>);

impl Leases {
    /// The answer to this request, on its way, names these.
    pub(super) fn add(&self, request: &RequestId, named: Vec<Begun>) {
        self.lock().insert(request.clone(), named);
    }

    /// The answer to this request will never be sent: what it names ends.
    pub(super) fn revoke(&self, request: &RequestId) {
        // Dropped outside the lock.
        let _ended = self.lock().remove(request);
    }

    /// This message is sent now; what it gives out.
    fn sent(&self, message: &TxJsonRpcMessage<RoleServer>) -> Vec<ExecutionId> {
        match message {
            JsonRpcMessage::Response(response) => {
                let named = self.lock().remove(&response.id).unwrap_or_default();
                let named = named.into_iter();
                named
                    .map(|begun| {
                        let id = begun.id();
                        begun.release();
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

    fn lock(&self) -> MutexGuard<'_, HashMap<RequestId, Vec<Begun>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the handler and the transport of one stream share.
#[derive(Debug, Clone, Default)]
pub(super) struct Line {
    /// Calls under way.
    pub(super) calls: TaskTracker,
    pub(super) leases: Leases,
    /// Cancelled when the client has closed its side: what waits for that (the library says so
    /// only after its drain time) ends at once.
    pub(super) left: CancellationToken,
}

/// A transport whose answers give out the ids they name, and that tells when the client left.
#[derive(Debug)]
pub(super) struct Witnessed<T> {
    transport: T,
    line: Line,
    desk: Desk,
    client: Arc<Client>,
}

impl<T> Witnessed<T> {
    pub(super) fn new(transport: T, line: Line, (desk, client): (Desk, Arc<Client>)) -> Self {
        Self {
            transport,
            line,
            desk,
            client,
        }
    }

    fn sent(&self, message: &TxJsonRpcMessage<RoleServer>) {
        let given_out = self.line.leases.sent(message);
        if given_out.is_empty() {
            return;
        }
        let (desk, client) = (self.desk.clone(), Arc::clone(&self.client));
        self.line.calls.spawn(async move {
            for id in given_out {
                desk.news().given_out(&client.caller, id).await;
            }
        });
    }
}

impl<T: Transport<RoleServer>> Transport<RoleServer> for Witnessed<T> {
    type Error = T::Error;

    fn name() -> Cow<'static, str> {
        T::name()
    }

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.sent(&item);
        self.transport.send(item)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        let message = self.transport.receive().await;
        if message.is_none() {
            self.line.left.cancel();
        }
        message
    }

    fn close(&mut self) -> impl Future<Output = Result<(), Self::Error>> + Send {
        self.transport.close()
    }
}
