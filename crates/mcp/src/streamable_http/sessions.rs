//! MCP sessions of the handshake era over HTTP.
//!
//! Wraps the library's own session manager for two purposes: to notify the router of starts and
//! ends of sessions, and to cancel the call of a response stream that its client lost and did not
//! resume in time. (The revisions of this era let clients resume a stream, so a lost connection
//! alone is no cancellation.)

use std::collections::HashSet;
use std::sync::Arc;

use futures_util::Stream;
use futures_util::stream::{self, SelectAll, StreamExt as _};
use http::request::Parts;
use parking_lot::Mutex;
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, ErrorData, GetExtensions as _,
    JsonObject, JsonRpcMessage, JsonRpcRequest, ServerJsonRpcMessage, ServerResult,
};
use rmcp::transport::WorkerTransport;
use rmcp::transport::streamable_http_server::session::local::{
    LocalSessionHandle, LocalSessionManager, LocalSessionManagerError, LocalSessionWorker,
};
use rmcp::transport::streamable_http_server::session::{
    RestoreOutcome, ServerSseMessage, SessionId, SessionManager,
};
use tokio::sync::mpsc::Receiver;

use super::batch::BatchExtension;
use super::config::StreamableConfig;
use super::event_ids::{EventIds, LastEvent, StreamRequest};
use super::streams::{
    ResponseStream, Resumption, StreamCall, StreamCalls, StreamEventIds, StreamKey, StreamWatch,
    error_message, event_position,
};
use crate::client::ConnectedClient;
use crate::interrupted::{CallEffect, InterruptCause, InterruptedCall};
use crate::json_rpc::IN_FLIGHT;
use crate::planned_start::PlannedStart;
use crate::tools;

/// Sessions, and the calls whose answers are pending.
#[derive(Debug)]
pub(super) struct HookedSessionManager {
    sessions: Arc<LocalSessionManager>,
    streaming: StreamableConfig,
    calls: Arc<StreamCalls>,
    event_ids: Arc<EventIds>,
    /// Sessions whose handshake is replayed.
    restoring: Mutex<HashSet<SessionId>>,
}

impl HookedSessionManager {
    pub(super) fn new(streaming: StreamableConfig) -> Self {
        let mut sessions = LocalSessionManager::default();
        // The session table ends idle sessions, and counts open streams as use.
        sessions.session_config.keep_alive = None;
        Self {
            sessions: Arc::new(sessions),
            streaming,
            calls: Arc::default(),
            event_ids: Arc::new(EventIds::new()),
            restoring: Mutex::default(),
        }
    }

    /// Whether the session is in memory and takes messages.
    pub(super) async fn is_ready(&self, id: &str) -> bool {
        !self.restoring.lock().contains(id) && self.sessions.sessions.read().await.contains_key(id)
    }

    async fn handle(&self, id: &SessionId) -> Result<LocalSessionHandle, LocalSessionManagerError> {
        let sessions = self.sessions.sessions.read().await;
        let handle = sessions.get(id).cloned();
        handle.ok_or_else(|| LocalSessionManagerError::SessionNotFound(id.clone()))
    }

    /// The event ids of a stream that answers this request, or none.
    fn ids_of(&self, request: Option<&StreamRequest>) -> StreamEventIds {
        StreamEventIds {
            ids: Arc::clone(&self.event_ids),
            request: request.and_then(StreamRequest::encode).map(Into::into),
        }
    }

    fn watch_stream(
        &self,
        key: StreamKey,
        turn: u64,
        ids: StreamEventIds,
        receiver: Receiver<ServerSseMessage>,
    ) -> ResponseStream {
        let watch = StreamWatch {
            key,
            turn,
            sessions: Arc::clone(&self.sessions),
            calls: Arc::clone(&self.calls),
            streaming: self.streaming.clone(),
        };
        ResponseStream::watched(receiver, ids, watch)
    }

    /// Opens the response stream of a request and returns it with its number; an error where a
    /// request with its id is under way.
    async fn open_stream(
        &self,
        handle: &LocalSessionHandle,
        request: &StreamRequest,
        call: StreamCall,
    ) -> Result<Result<(u64, ResponseStream), ServerSseMessage>, LocalSessionManagerError> {
        let channel = handle.establish_request_wise_channel().await?;
        let id = handle.id();
        let gone = || LocalSessionManagerError::SessionNotFound(id.clone());
        let stream = channel.http_request_id.ok_or_else(gone)?;
        let key = (id.clone(), stream);
        let Some(turn) = self.calls.begin(key.clone(), call) else {
            handle.close_request_wise_channel(stream).await?;
            let error = ErrorData::invalid_request(IN_FLIGHT, None);
            return Ok(Err(error_message(request.id.clone(), error)));
        };
        let ids = self.ids_of(Some(request));
        Ok(Ok((
            stream,
            self.watch_stream(key, turn, ids, channel.inner),
        )))
    }

    /// Forwards one request.
    async fn forward(
        &self,
        handle: &LocalSessionHandle,
        mut message: ClientJsonRpcMessage,
    ) -> Result<JoinedStreams, LocalSessionManagerError> {
        let mut joined = JoinedStreams::default();
        if let JsonRpcMessage::Request(request) = &mut message {
            let start = plan_start(request);
            let stream_request = StreamRequest::of(request, start.as_ref());
            let call = StreamCall::of(request, start);
            match self.open_stream(handle, &stream_request, call).await? {
                Ok((stream, answering)) => {
                    joined.streams.push(answering);
                    handle.push_message(message, Some(stream)).await?;
                }
                Err(refused) => joined.rejected.push(refused),
            }
        }
        Ok(joined)
    }

    /// Forwards the messages of a batch, in order.
    async fn forward_batch(
        &self,
        handle: LocalSessionHandle,
        messages: Vec<ClientJsonRpcMessage>,
    ) -> Result<JoinedStreams, LocalSessionManagerError> {
        let mut joined = JoinedStreams::default();
        let mut forwarded = Vec::new();
        for message in messages {
            let JsonRpcMessage::Request(request) = &message else {
                forwarded.push((message, None));
                continue;
            };
            // Its stream is part of another and cannot be resumed.
            let stream_request = StreamRequest::of(request, None);
            let call = StreamCall::of(request, None);
            match self.open_stream(&handle, &stream_request, call).await? {
                Ok((stream, answering)) => {
                    joined.streams.push(answering.in_batch());
                    forwarded.push((message, Some(stream)));
                }
                Err(refused) => joined.rejected.push(refused),
            }
        }
        // In a separate task: the session takes the later members while the client reads the
        // answers to the first.
        let calls = Arc::clone(&self.calls);
        self.streaming.tasks.spawn(async move {
            for (message, stream) in forwarded {
                calls.on_client_message(handle.id(), &message);
                if let Err(error) = handle.push_message(message, stream).await {
                    tracing::debug!(%error, "the session of a batch is gone");
                    return;
                }
            }
        });
        Ok(joined)
    }
}

impl HookedSessionManager {
    /// The stream of what answers no request, with what this daemon has not sent yet.
    async fn standalone_stream(
        &self,
        handle: &LocalSessionHandle,
    ) -> Result<ResponseStream, LocalSessionManagerError> {
        let receiver = handle.establish_common_channel().await?.inner;
        Ok(ResponseStream::unwatched(receiver, self.ids_of(None)))
    }

    /// Resumes a stream of this daemon.
    async fn resume_current(
        &self,
        handle: &LocalSessionHandle,
        last_event_id: String,
        request: Option<&StreamRequest>,
    ) -> Result<ResumeOutcome, LocalSessionManagerError> {
        let (position, ids) = (event_position(&last_event_id), self.ids_of(request));
        let last = last_event_id.parse()?;
        // Before the library replaces the old stream, so that its end is ignored.
        let key = position.map(|(_, stream)| (handle.id().clone(), stream));
        let resumption = position
            .zip(key.as_ref())
            .and_then(|((index, _), key)| self.calls.resume(key, index));
        match resumption {
            Some(Resumption::Answered(missed)) => {
                return Ok(ResumeOutcome::Stream(ResponseStream::replay(
                    missed.into_iter(),
                    ids,
                )));
            }
            Some(Resumption::Dropped) => return Ok(ResumeOutcome::AnswerDropped),
            Some(Resumption::Live(_)) | None => {}
        }
        let receiver = handle.resume(last).await?.inner;
        Ok(ResumeOutcome::Stream(match (key, resumption) {
            (Some(key), Some(Resumption::Live(turn))) => {
                self.watch_stream(key, turn, ids, receiver)
            }
            _ => ResponseStream::unwatched(receiver, ids),
        }))
    }

    /// Answers a request whose stream is gone.
    fn lost_answer(
        &self,
        id: &SessionId,
        request: StreamRequest,
        cause: InterruptCause,
    ) -> ResponseStream {
        let hooks = &self.streaming.hooks;
        let result = request
            .call
            .and_then(|call| hooks.interrupted_call(id, &call, cause));
        let event = match result {
            Some(result) => {
                let result = ServerResult::CallToolResult(result);
                ServerSseMessage::from_message(JsonRpcMessage::response(result, request.id))
            }
            None => {
                let message = "the answer to this request is lost; send it again";
                error_message(request.id, ErrorData::internal_error(message, None))
            }
        };
        ResponseStream::replay([event].into_iter(), self.ids_of(None))
    }
}

/// A stream that a client asks for again.
enum ResumeOutcome {
    Stream(ResponseStream),
    /// Its answer had to make room for others.
    AnswerDropped,
}

/// Chooses the id of what a tool call starts, and tells the handler.
fn plan_start(request: &mut JsonRpcRequest<ClientRequest>) -> Option<PlannedStart> {
    let ClientRequest::CallToolRequest(call) = &mut request.request else {
        return None;
    };
    let start = PlannedStart::new();
    call.extensions_mut().insert(start.clone());
    Some(start)
}

impl StreamCall {
    fn of(request: &JsonRpcRequest<ClientRequest>, start: Option<PlannedStart>) -> Self {
        let parts = request.request.extensions().get::<Parts>();
        Self {
            request: request.id.clone(),
            start,
            access_end: parts.and_then(|parts| parts.extensions.get().cloned()),
            holder: parts.and_then(|parts| {
                let client = parts.extensions.get::<Arc<ConnectedClient>>()?;
                Some(client.caller.owner.principal.clone())
            }),
        }
    }
}

impl StreamRequest {
    fn of(request: &JsonRpcRequest<ClientRequest>, start: Option<&PlannedStart>) -> Self {
        let call = start.and_then(|start| interrupted_call(request, start));
        let id = request.id.clone();
        Self { id, call }
    }
}

/// What is to be said of a tool call that cannot be completed.
fn interrupted_call(
    request: &JsonRpcRequest<ClientRequest>,
    start: &PlannedStart,
) -> Option<InterruptedCall> {
    let ClientRequest::CallToolRequest(call) = &request.request else {
        return None;
    };
    let parts = call.extensions().get::<Parts>()?;
    let client = parts.extensions.get::<Arc<ConnectedClient>>()?;
    let tool = tools::find_tool(client.context.tools, &call.params.name);
    let no_arguments = JsonObject::new();
    let arguments = call.params.arguments.as_ref().unwrap_or(&no_arguments);
    let effect = tool.map(|tool| CallEffect::of(tool, arguments));
    Some(InterruptedCall::new(client, effect, &[start.id()]))
}

fn is_initialized(message: &ClientJsonRpcMessage) -> bool {
    let JsonRpcMessage::Notification(notification) = message else {
        return false;
    };
    matches!(
        notification.notification,
        ClientNotification::InitializedNotification(_)
    )
}

/// Response streams merged into one.
#[derive(Debug, Default)]
struct JoinedStreams {
    rejected: Vec<ServerSseMessage>,
    streams: SelectAll<ResponseStream>,
}

impl JoinedStreams {
    fn into_stream(self) -> impl Stream<Item = ServerSseMessage> + Send + Sync + 'static {
        stream::iter(self.rejected).chain(self.streams)
    }
}

impl SessionManager for HookedSessionManager {
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
            let params = serde_json::to_value(&initialize.params).unwrap_or_default();
            if let Some(parts) = initialize.extensions_mut().get_mut::<Parts>() {
                self.streaming
                    .hooks
                    .on_session_started(id, params, &mut parts.extensions);
            }
        }
        self.sessions.initialize_session(id, message).await
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, Self::Error> {
        self.sessions.has_session(id).await
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), Self::Error> {
        self.restoring.lock().remove(id);
        let closed = self.sessions.close_session(id).await;
        self.calls.forget(id);
        self.streaming.hooks.on_session_ended(id).await;
        closed
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        let handle = self.handle(id).await?;
        let joined = match BatchExtension::messages_of(&message) {
            Some(messages) => self.forward_batch(handle, messages).await?,
            None => self.forward(&handle, message).await?,
        };
        Ok(joined.into_stream())
    }

    async fn accept_message(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<(), Self::Error> {
        self.calls.on_client_message(id, &message);
        let completes_handshake = is_initialized(&message);
        let accepted = self.sessions.accept_message(id, message).await;
        if completes_handshake {
            self.restoring.lock().remove(id);
        }
        accepted
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        let handle = self.handle(id).await?;
        self.standalone_stream(&handle).await
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        let handle = self.handle(id).await?;
        match self.event_ids.parse(&last_event_id) {
            LastEvent::Current { position, request } => {
                let resumed = self.resume_current(&handle, position, request.as_ref());
                let (cause, failure) = match resumed.await {
                    Ok(ResumeOutcome::Stream(stream)) => return Ok(stream),
                    Ok(ResumeOutcome::AnswerDropped) => (InterruptCause::AnswerDropped, None),
                    Err(failure) => (InterruptCause::StreamLost, Some(failure)),
                };
                match (request, failure) {
                    (Some(request), _) => Ok(self.lost_answer(id, request, cause)),
                    (None, Some(failure)) => Err(failure),
                    // Who has the answer asks for what follows it, which is nothing.
                    (None, None) => Ok(ResponseStream::replay(
                        std::iter::empty(),
                        self.ids_of(None),
                    )),
                }
            }
            LastEvent::Earlier {
                request: Some(request),
            } => Ok(self.lost_answer(id, request, InterruptCause::Restart)),
            LastEvent::Earlier { request: None } => self.standalone_stream(&handle).await,
        }
    }

    async fn restore_session(
        &self,
        id: SessionId,
    ) -> Result<RestoreOutcome<Self::Transport>, Self::Error> {
        self.restoring.lock().insert(id.clone());
        let restored = self.sessions.restore_session(id.clone()).await;
        if !matches!(restored, Ok(RestoreOutcome::Restored(_))) {
            self.restoring.lock().remove(&id);
        }
        restored
    }
}
