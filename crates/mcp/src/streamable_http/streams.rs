//! Response streams of MCP sessions over HTTP, and the fate of calls whose stream ends.

use std::collections::{HashMap, VecDeque};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::Stream;
use ostler_interface::http::AccessEnd;
use ostler_model::Principal;
use parking_lot::Mutex;
use rmcp::model::{
    CancelledNotification, CancelledNotificationParam, ClientJsonRpcMessage, ClientNotification,
    ErrorCode, ErrorData, JsonRpcError, JsonRpcMessage, JsonRpcNotification, RequestId,
};
use rmcp::transport::streamable_http_server::session::local::{
    LocalSessionManager, LocalSessionManagerError,
};
use rmcp::transport::streamable_http_server::session::{
    ServerSseMessage, SessionId, SessionManager as _,
};
use tokio::runtime::Handle;
use tokio::sync::mpsc::{self, Receiver};
use tokio::time::{Instant, sleep_until, timeout_at};

use super::config::StreamableConfig;
use super::delivered::{DeliveredAnswers, KeptAnswer};
use super::event_ids::EventIds;
use crate::planned_start::PlannedStart;

/// The error of a request whose session has ended, in the range JSON-RPC leaves to
/// implementations.
const SESSION_ENDED: ErrorCode = ErrorCode(-32_000);
/// The most events kept for a client that lost its stream; the oldest are dropped.
const MISSED_MAX: usize = 64;

/// Calls whose response streams are open or may be resumed.
#[derive(Debug, Default)]
pub(super) struct StreamCalls {
    live: Mutex<HashMap<StreamKey, LiveCall>>,
    delivered: Mutex<DeliveredAnswers>,
}

/// A session and the number of a response stream in it.
pub(super) type StreamKey = (SessionId, u64);

/// A call as its stream begins.
#[derive(Debug)]
pub(super) struct StreamCall {
    pub(super) request: RequestId,
    /// What it starts, where it is a tool call.
    pub(super) start: Option<PlannedStart>,
    /// The end of the access with which it was made.
    pub(super) access_end: Option<AccessEnd>,
    /// Who called, where that is known.
    pub(super) holder: Option<Principal>,
}

#[derive(Debug)]
struct LiveCall {
    call: StreamCall,
    /// How often the stream was resumed: only the loss of the latest one counts.
    epoch: u64,
    /// What came while no client read the stream.
    missed: VecDeque<ServerSseMessage>,
    /// Whether the answer is among that: the session knows nothing of the call any more.
    is_answered: bool,
}

/// How a stream is resumed.
#[derive(Debug)]
pub(super) enum Resumption {
    /// By the session, as this epoch.
    Live(u64),
    /// The call was answered meanwhile: what the client missed.
    Answered(VecDeque<ServerSseMessage>),
    /// The call was answered, and its answer had to make room for others.
    Dropped,
}

impl StreamCalls {
    /// Registers a call and returns the epoch of its stream; none where one with its id is under
    /// way in the session.
    pub(super) fn begin(&self, key: StreamKey, call: StreamCall) -> Option<u64> {
        let mut calls = self.live.lock();
        let is_same = |((session, _), live): (&StreamKey, &LiveCall)| {
            *session == key.0 && live.call.request == call.request
        };
        if calls.iter().any(is_same) {
            return None;
        }
        let turn = 0;
        calls.insert(
            key,
            LiveCall {
                call,
                epoch: turn,
                missed: VecDeque::new(),
                is_answered: false,
            },
        );
        Some(turn)
    }

    /// The stream is resumed after the event of this index; ends of earlier ones are ignored from
    /// now on.
    pub(super) fn resume(&self, key: &StreamKey, last: u64) -> Option<Resumption> {
        let mut calls = self.live.lock();
        let Some(live) = calls.get_mut(key) else {
            return Some(match self.delivered.lock().get(key, Instant::now())? {
                KeptAnswer::Kept(answer) => Resumption::Answered(new_events([&answer], last)),
                KeptAnswer::Dropped => Resumption::Dropped,
            });
        };
        if live.is_answered {
            live.deliver();
            return Some(Resumption::Answered(new_events(&live.missed, last)));
        }
        live.epoch += 1;
        live.missed.clear();
        Some(Resumption::Live(live.epoch))
    }

    /// Keeps an event that no client read, for the holder of the stream of this epoch.
    fn keep(&self, key: &StreamKey, turn: u64, event: ServerSseMessage) {
        let mut calls = self.live.lock();
        let Some(live) = calls.get_mut(key).filter(|live| live.epoch == turn) else {
            return;
        };
        if live.missed.len() >= MISSED_MAX {
            live.missed.pop_front();
        }
        live.is_answered |= is_response(&event);
        live.missed.push_back(event);
    }

    /// Inspects a message of the client to the session: a request it cancels gets no answer.
    pub(super) fn on_client_message(&self, session: &SessionId, message: &ClientJsonRpcMessage) {
        let JsonRpcMessage::Notification(JsonRpcNotification {
            notification: ClientNotification::CancelledNotification(cancelled),
            ..
        }) = message
        else {
            return;
        };
        let Some(id) = &cancelled.params.request_id else {
            return;
        };
        self.live
            .lock()
            .retain(|(key_session, _), live| key_session != session || live.call.request != *id);
    }

    /// Ends the call, for the holder of the stream of this epoch. What its answer names, and no client
    /// has read, ends with the returned value.
    fn finish(&self, key: &StreamKey, turn: u64) -> Option<LiveCall> {
        let mut calls = self.live.lock();
        calls.get(key).filter(|live| live.epoch == turn)?;
        calls.remove(key)
    }

    /// Ends a call whose answer is given to the connection of the stream of this epoch. The client may
    /// ask for it again for this long.
    fn answer(&self, key: &StreamKey, turn: u64, event: &ServerSseMessage, window: Duration) {
        let mut calls = self.live.lock();
        let Some(live) = calls.get(key).filter(|live| live.epoch == turn) else {
            return;
        };
        let holder = live.call.holder.clone();
        // Under both locks: who resumes the stream meanwhile finds the call or its answer.
        let mut delivered = self.delivered.lock();
        delivered.keep(key.clone(), holder, event.clone(), Instant::now(), window);
        if let Some(live) = calls.remove(key) {
            live.deliver();
        }
    }

    /// Drops what is kept for a session that has ended.
    pub(super) fn forget(&self, session: &SessionId) {
        self.delivered.lock().forget(session);
    }

    /// The end of the access with which the call of a stream was made.
    async fn access_end(&self, key: &StreamKey) {
        let access_end = {
            let calls = self.live.lock();
            calls.get(key).and_then(|live| live.call.access_end.clone())
        };
        match access_end {
            Some(end) => end.wait().await,
            None => std::future::pending().await,
        }
    }

    /// The daemon shuts down: what was started goes on, and the next daemon tells the client.
    fn detach_all(&self) {
        for live in self.live.lock().values() {
            live.call.start.iter().for_each(PlannedStart::detach);
        }
    }
}

impl LiveCall {
    /// A client gets the answer.
    fn deliver(&self) {
        if let Some(start) = &self.call.start {
            start.deliver();
        }
    }
}

/// The response stream of one request.
#[derive(Debug)]
pub(super) struct ResponseStream {
    receiver: Receiver<ServerSseMessage>,
    ids: StreamEventIds,
    watch: Option<StreamWatch>,
    /// Part of the merged stream of a batch; cannot be resumed.
    is_member: bool,
}

/// The event ids of one stream.
#[derive(Debug, Clone)]
pub(super) struct StreamEventIds {
    pub(super) ids: Arc<EventIds>,
    /// The request that it answers, encoded.
    pub(super) request: Option<Arc<str>>,
}

impl StreamEventIds {
    /// Makes the event's id, which is the library's, the client's. Whoever has the response is to
    /// be answered no more.
    fn apply(&self, event: &mut ServerSseMessage) {
        let request = self.request.as_deref().filter(|_| !is_response(event));
        if let Some(position) = &event.event_id {
            event.event_id = Some(self.ids.id(position, request));
        }
    }
}

/// Decides the fate of a call when its stream ends.
#[derive(Debug)]
pub(super) struct StreamWatch {
    pub(super) key: StreamKey,
    pub(super) turn: u64,
    pub(super) sessions: Arc<LocalSessionManager>,
    pub(super) calls: Arc<StreamCalls>,
    pub(super) streaming: StreamableConfig,
}

impl ResponseStream {
    pub(super) const fn watched(
        receiver: Receiver<ServerSseMessage>,
        ids: StreamEventIds,
        watch: StreamWatch,
    ) -> Self {
        Self {
            receiver,
            ids,
            watch: Some(watch),
            is_member: false,
        }
    }

    pub(super) const fn unwatched(
        receiver: Receiver<ServerSseMessage>,
        ids: StreamEventIds,
    ) -> Self {
        Self {
            receiver,
            ids,
            watch: None,
            is_member: false,
        }
    }

    /// Events that are known already, and nothing after them.
    pub(super) fn replay(
        events: impl ExactSizeIterator<Item = ServerSseMessage>,
        ids: StreamEventIds,
    ) -> Self {
        let (sender, receiver) = mpsc::channel(events.len().max(1));
        for event in events {
            // There is room for all of them.
            let _sent = sender.try_send(event);
        }
        Self::unwatched(receiver, ids)
    }

    pub(super) fn in_batch(mut self) -> Self {
        self.is_member = true;
        self
    }

    /// The event to send; none where it only supports resumption.
    fn outgoing_event(&mut self, mut event: ServerSseMessage) -> Option<ServerSseMessage> {
        if is_response(&event)
            && let Some(watch) = self.watch.take()
        {
            let window = watch.streaming.resume_window;
            watch.calls.answer(&watch.key, watch.turn, &event, window);
        }
        if self.is_member {
            event.message.as_ref()?;
            (event.event_id, event.retry) = (None, None);
        } else {
            self.ids.apply(&mut event);
        }
        Some(event)
    }

    /// The error that ends the stream of a call neither answered nor cancelled.
    fn final_error(&mut self) -> Option<ServerSseMessage> {
        let watch = self.watch.take()?;
        if watch.streaming.shutdown.is_cancelled() {
            watch.calls.detach_all();
            return None;
        }
        let live = watch.calls.finish(&watch.key, watch.turn)?;
        let error = ErrorData::new(SESSION_ENDED, "cancelled: the session ended", None);
        Some(error_message(live.call.request, error))
    }
}

/// An error response.
pub(super) fn error_message(request: RequestId, error: ErrorData) -> ServerSseMessage {
    let error = JsonRpcError::new(Some(request), error);
    ServerSseMessage::from_message(JsonRpcMessage::Error(error))
}

impl Stream for ResponseStream {
    type Item = ServerSseMessage;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            match self.receiver.poll_recv(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(None) => return Poll::Ready(self.final_error()),
                Poll::Ready(Some(event)) => {
                    if let Some(event) = self.outgoing_event(event) {
                        return Poll::Ready(Some(event));
                    }
                }
            }
        }
    }
}

/// The events after the one of this index.
fn new_events<'e>(
    events: impl IntoIterator<Item = &'e ServerSseMessage>,
    last: u64,
) -> VecDeque<ServerSseMessage> {
    let position = |event: &ServerSseMessage| event_position(event.event_id.as_deref()?);
    let is_new = |event: &&ServerSseMessage| position(event).is_none_or(|(at, _)| at > last);
    events.into_iter().filter(is_new).cloned().collect()
}

fn is_response(event: &ServerSseMessage) -> bool {
    let message = event.message.as_deref();
    message.is_some_and(|message| match message {
        JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => true,
        JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => false,
    })
}

impl Drop for ResponseStream {
    fn drop(&mut self) {
        let Some(watch) = self.watch.take() else {
            return;
        };
        let shutting_down = watch.streaming.shutdown.is_cancelled();
        if shutting_down {
            watch.calls.detach_all();
        } else if let Ok(runtime) = Handle::try_current() {
            let tasks = watch.streaming.tasks.clone();
            let (_, closed) = mpsc::channel(1);
            let receiver = std::mem::replace(&mut self.receiver, closed);
            tasks.spawn_on(watch.keep_until_resumed(receiver), &runtime);
        }
    }
}

impl StreamWatch {
    /// The client lost the stream: what comes meanwhile is kept; unless the client resumes in time,
    /// its call is cancelled, and an answer dropped. At the end of its access that is so at once.
    async fn keep_until_resumed(self, mut receiver: Receiver<ServerSseMessage>) {
        let shutdown = self.streaming.shutdown.clone();
        let kept = async {
            tokio::select! {
                biased;
                () = self.calls.access_end(&self.key) => false,
                is_answered = self.keep_events(&mut receiver) => is_answered,
            }
        };
        let waiting = shutdown.run_until_cancelled(kept);
        let Some(is_answered) = waiting.await else {
            self.calls.detach_all();
            return;
        };
        let Some(live) = self.calls.finish(&self.key, self.turn) else {
            return;
        };
        if is_answered {
            // Dropped with `live`: what the answer names, which nobody has read, ends.
            return;
        }
        if let Err(error) = self.cancel(live.call.request).await {
            tracing::debug!(%error, "the session of a lost stream is gone");
        }
    }

    /// Cancels the call. Nothing more comes of it: who resumes its stream is to be told so.
    async fn cancel(&self, request: RequestId) -> Result<(), LocalSessionManagerError> {
        let (session, stream) = &self.key;
        let handle = self.sessions.sessions.read().await.get(session).cloned();
        let cancelled = self
            .sessions
            .accept_message(session, cancel_notification(request))
            .await;
        if let Some(handle) = handle {
            handle.close_request_wise_channel(*stream).await?;
        }
        cancelled
    }

    /// Keeps events until the client may no longer resume; returns whether the answer is one.
    async fn keep_events(&self, receiver: &mut Receiver<ServerSseMessage>) -> bool {
        let window = self.streaming.resume_window;
        let mut until = Instant::now() + window;
        let mut is_answered = false;
        while let Ok(Some(event)) = timeout_at(until, receiver.recv()).await {
            if is_response(&event) {
                is_answered = true;
                until = Instant::now() + window;
            }
            self.calls.keep(&self.key, self.turn, event);
        }
        // Its end comes with the answer, or where the client resumes.
        sleep_until(until).await;
        is_answered
    }
}

/// The index and the number of the response stream in an event id of the library (`index/stream`).
pub(super) fn event_position(event_id: &str) -> Option<(u64, u64)> {
    let (index, stream) = event_id.split_once('/')?;
    Some((index.parse().ok()?, stream.parse().ok()?))
}

fn cancel_notification(request: RequestId) -> ClientJsonRpcMessage {
    let reason = "its response stream was closed".to_owned();
    let params = CancelledNotificationParam::new(Some(request), Some(reason));
    let notification = CancelledNotification::new(params);
    ClientJsonRpcMessage::notification(ClientNotification::CancelledNotification(notification))
}
