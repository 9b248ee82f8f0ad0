//! MCP sessions of the handshake era over HTTP.
//!
//! The library's own manager does the work. Ours stands in front of it for two things: the
//! door is told of begins and ends, and a response stream its client lost cancels its call,
//! unless the client comes back to it in time (F7; the revisions of this era let clients
//! resume a stream, so a lost connection alone is no cancellation).

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use futures_util::Stream;
use http::request::Parts;
use rmcp::model::{
    CancelledNotification, CancelledNotificationParam, ClientJsonRpcMessage, ClientNotification,
    ClientRequest, GetExtensions as _, JsonRpcMessage, RequestId, ServerJsonRpcMessage,
};
use rmcp::transport::WorkerTransport;
use rmcp::transport::streamable_http_server::session::local::{
    LocalSessionHandle, LocalSessionManager, LocalSessionManagerError, LocalSessionWorker,
};
use rmcp::transport::streamable_http_server::session::{
    RestoreOutcome, ServerSseMessage, SessionId, SessionManager,
};
use tokio::runtime::Handle;
use tokio::sync::mpsc::Receiver;
use tokio::time::{Instant, sleep_until};

use super::http::Streaming;

/// Sessions, and the calls whose answers are on their way.
#[derive(Debug)]
pub(super) struct Manager {
    sessions: Arc<LocalSessionManager>,
    streaming: Streaming,
    calls: Arc<Calls>,
}

/// Calls whose response streams are open or may be taken up again.
#[derive(Debug, Default)]
struct Calls(Mutex<HashMap<StreamKey, Live>>);

/// A session and the number of a response stream in it.
type StreamKey = (SessionId, u64);

#[derive(Debug)]
struct Live {
    request: RequestId,
    /// How often the stream was taken up again: a loss counts only for the last one.
    turn: u64,
}

impl Manager {
    pub(super) fn new(streaming: Streaming) -> Self {
        let mut sessions = LocalSessionManager::default();
        // The door ends what is idle, and counts open streams as use.
        sessions.session_config.keep_alive = None;
        Self {
            sessions: Arc::new(sessions),
            streaming,
            calls: Arc::default(),
        }
    }

    async fn handle(&self, id: &SessionId) -> Result<LocalSessionHandle, LocalSessionManagerError> {
        let sessions = self.sessions.sessions.read().await;
        let handle = sessions.get(id).cloned();
        handle.ok_or_else(|| LocalSessionManagerError::SessionNotFound(id.clone()))
    }

    fn watch(&self, key: StreamKey, turn: u64, receiver: Receiver<ServerSseMessage>) -> Answering {
        let watch = Watch {
            key,
            turn,
            sessions: Arc::clone(&self.sessions),
            calls: Arc::clone(&self.calls),
            streaming: self.streaming.clone(),
        };
        Answering {
            receiver,
            watch: Some(watch),
        }
    }
}

impl SessionManager for Manager {
    type Error = LocalSessionManagerError;
    type Transport = WorkerTransport<LocalSessionWorker>;

    async fn create_session(&self) -> Result<(SessionId, Self::Transport), Self::Error> {
        self.sessions.create_session().await
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        mut message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, Self::Error> {
        if let JsonRpcMessage::Request(request) = &mut message
            && let ClientRequest::InitializeRequest(initialize) = &mut request.request
        {
            let said = serde_json::to_value(&initialize.params).unwrap_or_default();
            if let Some(parts) = initialize.extensions_mut().get_mut::<Parts>() {
                self.streaming.door.begun(id, said, &mut parts.extensions);
            }
        }
        self.sessions.initialize_session(id, message).await
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, Self::Error> {
        self.sessions.has_session(id).await
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), Self::Error> {
        let closed = self.sessions.close_session(id).await;
        self.streaming.door.ended(id).await;
        closed
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        let handle = self.handle(id).await?;
        let channel = handle.establish_request_wise_channel().await?;
        let (stream, receiver) = (channel.http_request_id, channel.inner);
        let answering = match (&message, stream) {
            (JsonRpcMessage::Request(request), Some(stream)) => {
                let key = (id.clone(), stream);
                let turn = self.calls.begin(key.clone(), request.id.clone());
                self.watch(key, turn, receiver)
            }
            (_, _) => Answering::unwatched(receiver),
        };
        handle.push_message(message, stream).await?;
        Ok(answering)
    }

    async fn accept_message(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<(), Self::Error> {
        self.sessions.accept_message(id, message).await
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        self.sessions.create_standalone_stream(id).await
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        let stream = stream_of(&last_event_id);
        let handle = self.handle(id).await?;
        let last = last_event_id.parse()?;
        // Before the library replaces the old stream, so that its end counts for nothing.
        let key = stream.map(|stream| (id.clone(), stream));
        let turn = key.as_ref().and_then(|key| self.calls.take_up(key));
        let receiver = handle.resume(last).await?.inner;
        Ok(match (key, turn) {
            (Some(key), Some(turn)) => self.watch(key, turn, receiver),
            (_, None) | (None, _) => Answering::unwatched(receiver),
        })
    }

    async fn restore_session(
        &self,
        id: SessionId,
    ) -> Result<RestoreOutcome<Self::Transport>, Self::Error> {
        self.sessions.restore_session(id).await
    }
}

/// The number of the response stream an event id belongs to: `index/stream`.
fn stream_of(event_id: &str) -> Option<u64> {
    event_id.split_once('/')?.1.parse().ok()
}

impl Calls {
    fn begin(&self, key: StreamKey, request: RequestId) -> u64 {
        let turn = 0;
        self.lock().insert(key, Live { request, turn });
        turn
    }

    /// The stream is taken up again; what happens to earlier ones is nothing now.
    fn take_up(&self, key: &StreamKey) -> Option<u64> {
        let mut calls = self.lock();
        let live = calls.get_mut(key)?;
        live.turn += 1;
        Some(live.turn)
    }

    /// The call is over for whoever held the stream at this turn.
    fn finish(&self, key: &StreamKey, turn: u64) -> Option<RequestId> {
        let mut calls = self.lock();
        calls.get(key).filter(|live| live.turn == turn)?;
        calls.remove(key).map(|live| live.request)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<StreamKey, Live>> {
        // Every change is whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A response stream.
struct Answering {
    receiver: Receiver<ServerSseMessage>,
    watch: Option<Watch>,
}

/// What becomes of a call when its stream ends.
struct Watch {
    key: StreamKey,
    turn: u64,
    sessions: Arc<LocalSessionManager>,
    calls: Arc<Calls>,
    streaming: Streaming,
}

impl Answering {
    const fn unwatched(receiver: Receiver<ServerSseMessage>) -> Self {
        let watch = None;
        Self { receiver, watch }
    }
}

impl Stream for Answering {
    type Item = ServerSseMessage;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let polled = self.receiver.poll_recv(cx);
        let is_last = match &polled {
            Poll::Pending => false,
            Poll::Ready(None) => true,
            Poll::Ready(Some(event)) => is_answer(event),
        };
        if is_last && let Some(watch) = self.watch.take() {
            drop(watch.calls.finish(&watch.key, watch.turn));
        }
        polled
    }
}

fn is_answer(event: &ServerSseMessage) -> bool {
    let message = event.message.as_deref();
    message.is_some_and(|message| match message {
        JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => true,
        JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => false,
    })
}

impl Drop for Answering {
    fn drop(&mut self) {
        let Some(watch) = self.watch.take() else {
            return;
        };
        let shutting_down = watch.streaming.shutdown.is_cancelled();
        if let (false, Ok(runtime)) = (shutting_down, Handle::try_current()) {
            let tasks = watch.streaming.tasks.clone();
            tasks.spawn_on(watch.lost(), &runtime);
        }
    }
}

impl Watch {
    /// The client lost the stream: unless it comes back in time, its call is cancelled.
    async fn lost(self) {
        let until = Instant::now() + self.streaming.resume;
        let waiting = self
            .streaming
            .shutdown
            .run_until_cancelled(sleep_until(until));
        if waiting.await.is_none() {
            return;
        }
        let Some(request) = self.calls.finish(&self.key, self.turn) else {
            return;
        };
        let (session, _) = &self.key;
        let cancelled = self
            .sessions
            .accept_message(session, cancelled(request))
            .await;
        if let Err(error) = cancelled {
            tracing::debug!(%error, "the session of a lost stream is gone");
        }
    }
}

fn cancelled(request: RequestId) -> ClientJsonRpcMessage {
    let reason = "its response stream was closed".to_owned();
    let params = CancelledNotificationParam::new(Some(request), Some(reason));
    let notification = CancelledNotification::new(params);
    ClientJsonRpcMessage::notification(ClientNotification::CancelledNotification(notification))
}
