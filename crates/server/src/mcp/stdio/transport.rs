//! The library's transport over one connection: every line is answered, whatever it holds.

use std::collections::VecDeque;
use std::future::{Future, pending};
use std::io;
use std::sync::Arc;
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{
    ClientNotification, ClientRequest, ErrorCode, ErrorData, GetExtensions as _, GetMeta as _,
    JsonRpcMessage, JsonRpcNotification, ProtocolVersion, RequestId,
};
use rmcp::service::TxJsonRpcMessage;
use rmcp::transport::Transport;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

use super::attempt::Attempt;
use super::backlog::Pending;
use super::endpoint::Source;
use super::lines::{LINE_BYTES, Line as Text};
use super::log::Filled;
use super::message::{self, Incoming, Malformed, Parsed};
use super::record::Output;
use super::shared::{Line, Shared, encoded, finished};
use super::table::Role;
use crate::mcp::batch::{self, Member};

/// How long requests under way have once the client has closed its side, in milliseconds.
const DRAIN_MS: u64 = 1_000;
/// How long the last answers may take to be written, in milliseconds.
const LAST_WRITE_MS: u64 = 1_000;
/// The error of a request whose client has closed its side, in the range JSON-RPC leaves to
/// implementations.
const INPUT_CLOSED: ErrorCode = ErrorCode(-32_000);

/// One connection.
#[derive(Debug)]
pub(in crate::mcp) struct Stdio {
    source: Source,
    shared: Arc<Shared>,
    /// Messages for the service.
    queue: VecDeque<Incoming>,
    /// Lines for the client.
    replies: Vec<Line>,
    /// Some lines may be half written.
    is_writing: bool,
    /// The service has seen a message with which it can begin.
    is_open: bool,
    stage: Stage,
    ends: Ends,
}

/// Told when the client leaves.
#[derive(Debug, Clone)]
pub(in crate::mcp) struct Ends {
    /// The client has closed its side.
    pub(in crate::mcp) left: CancellationToken,
    /// Nobody waits for an answer any more.
    pub(in crate::mcp) closed: CancellationToken,
}

#[derive(Debug, Clone, Copy)]
enum Stage {
    Open,
    /// The client has closed its side; requests under way have until then.
    Draining(Instant),
    Over,
}

impl Stdio {
    /// A connection, and what an earlier service left of it.
    pub(super) fn new(source: Source, shared: Arc<Shared>, ends: Ends) -> Self {
        Self {
            source,
            shared,
            queue: VecDeque::new(),
            replies: Vec::new(),
            is_writing: true,
            is_open: false,
            stage: Stage::Open,
            ends,
        }
    }

    /// A message for the service, for which the client gets no answer.
    pub(super) fn inject(&mut self, message: Incoming) {
        self.queue.push_back(message);
    }

    /// A line for the client.
    pub(super) fn reply(&mut self, line: Line) {
        self.replies.push(line);
    }

    /// Takes a line of the client in; `earlier` is what an earlier service did about it.
    pub(super) fn take(&mut self, line: u64, text: &Text, earlier: &Pending) {
        let text = match text {
            Text::Whole(text) => text,
            Text::TooLong(prefix) => {
                let message = format!("a line must not be longer than {LINE_BYTES} bytes");
                return self.refuse(line, &Malformed::request(message::find_id(prefix), message));
            }
        };
        match message::parse(text) {
            Parsed::Blank | Parsed::Ignored => self.settle(line),
            Parsed::Malformed(malformed) => self.refuse(line, &malformed),
            Parsed::Batch(members) => self.batch(line, members, earlier),
            Parsed::Message(message) => {
                if !self.is_request(&message) {
                    self.settle(line);
                }
                if let Err(refused) = self.message(*message, (line, None), earlier) {
                    self.refuse(line, &refused);
                }
            }
        }
    }

    const fn is_request(&self, message: &Incoming) -> bool {
        matches!(message, JsonRpcMessage::Request(_))
    }

    fn settle(&self, line: u64) {
        self.shared.log.with(|backlog| backlog.settle(line));
    }

    fn refuse(&mut self, line: u64, malformed: &Malformed) {
        let standing = false;
        let output = Output::Answer { line, standing };
        self.replies.push((output, encoded(&malformed.response())));
    }

    /// Hands a message on; `member` is its place in a batch.
    fn message(
        &mut self,
        mut message: Incoming,
        (line, member): (u64, Option<u32>),
        earlier: &Pending,
    ) -> Result<(), Malformed> {
        match &mut message {
            JsonRpcMessage::Request(request) => {
                let role = match member {
                    Some(_) => Role::Member { batch: line },
                    None => Role::Line {
                        line,
                        standing: is_standing(&request.request),
                    },
                };
                let admitted = self
                    .shared
                    .table()
                    .admit(&request.id, role, earlier.acknowledged);
                admitted.map_err(|refusal| {
                    Malformed::request(Some(request.id.clone()), refusal.message())
                })?;
                if self.shared.log.file().is_some() {
                    let place = (line, member.unwrap_or(0));
                    let attempt = Attempt::new(&self.shared.log, place, earlier);
                    request.request.extensions_mut().insert(attempt);
                }
            }
            JsonRpcMessage::Notification(JsonRpcNotification {
                notification: ClientNotification::CancelledNotification(cancelled),
                ..
            }) => {
                if let Some(id) = &cancelled.params.request_id {
                    self.replies.extend(self.shared.cancelled(id));
                    // What the service has not seen yet it need not see.
                    let waits = |it: &Incoming| matches!(it, JsonRpcMessage::Request(request) if request.id == *id);
                    self.queue.retain(|it| !waits(it));
                }
            }
            JsonRpcMessage::Notification(_) => {}
            JsonRpcMessage::Response(response) => match self.shared.inward(&response.id) {
                Some(id) => response.id = id,
                None => return Ok(()),
            },
            JsonRpcMessage::Error(error) => {
                if let Some(id) = &error.id {
                    let Some(id) = self.shared.inward(id) else {
                        return Ok(());
                    };
                    error.id = Some(id);
                }
            }
        }
        self.queue.push_back(message);
        Ok(())
    }

    fn batch(&mut self, line: u64, values: Vec<Value>, earlier: &Pending) {
        let members = match self.members(values) {
            Ok(members) => members,
            Err(refused) => return self.refuse(line, &refused),
        };
        for (place, member) in members.into_iter().enumerate() {
            let place = u32::try_from(place).ok();
            let refused = match member {
                Member::Ignored => continue,
                Member::Refused(malformed) => malformed,
                Member::Message(message) => match self.message(*message, (line, place), earlier) {
                    Ok(()) => continue,
                    Err(refused) => refused,
                },
            };
            self.shared.table().note(line, refused.response());
        }
        let finished = finished(&mut self.shared.table(), line);
        self.replies.extend(finished);
    }

    /// What a batch consists of, where this connection takes batches.
    fn members(&self, values: Vec<Value>) -> Result<Vec<Member>, Malformed> {
        let revision = self.shared.table().revision.clone();
        if revision != Some(batch::REVISION) {
            let revision = revision.as_ref().map(ProtocolVersion::as_str);
            return Err(batch::not_taken(revision));
        }
        batch::members(values)
    }

    /// Whether the service can have this message. One that has not begun takes anything but a
    /// request for a reason to end.
    fn opens(&mut self, message: &Incoming) -> bool {
        let JsonRpcMessage::Request(request) = message else {
            return self.is_open;
        };
        let request = &request.request;
        let is_neutral = matches!(
            request,
            ClientRequest::PingRequest(_) | ClientRequest::DiscoverRequest(_)
        );
        if let ClientRequest::InitializeRequest(_) = request {
            self.is_open = true;
        } else if !is_neutral {
            let missing = request
                .get_meta()
                .missing_required_keys(&ProtocolVersion::V_2026_07_28);
            self.is_open |= missing.is_empty();
        }
        true
    }

    async fn write(&mut self) -> io::Result<()> {
        if self.replies.is_empty() && !self.is_writing {
            return Ok(());
        }
        self.is_writing = true;
        self.shared.write(&mut self.replies).await?;
        self.is_writing = false;
        Ok(())
    }

    /// Reads once.
    async fn read(&mut self) {
        let filled = self.source.fill(&self.shared.log).await;
        match filled {
            Ok(Filled::Lines(lines)) => self.take_all(&lines),
            Ok(Filled::Sealed) => pending().await,
            Ok(Filled::End) => self.end(),
            Err(error) => {
                tracing::info!(%error, "the client cannot be read any more");
                self.end();
            }
        }
    }

    fn take_all(&mut self, lines: &[(u64, Text)]) {
        let none = Pending::default();
        for (line, text) in lines {
            self.take(*line, text, &none);
        }
    }

    /// The client has closed its side; a last line need not have an end.
    fn end(&mut self) {
        if let Ok(Filled::Lines(lines)) = self.shared.log.input(b"\n") {
            self.take_all(&lines);
        }
        self.ends.left.cancel();
        let until = Instant::now() + Duration::from_millis(DRAIN_MS);
        self.stage = Stage::Draining(until);
    }

    /// Until nobody waits for an answer, or the time is over.
    async fn drain(shared: &Shared, until: Instant) {
        let idle = async {
            loop {
                let answered = shared.answered.notified();
                if shared.table().is_idle() {
                    return;
                }
                answered.await;
            }
        };
        if timeout_at(until, idle).await.is_err() {
            tracing::info!("requests were under way when the client closed its side");
        }
    }

    /// Answers what is under way.
    fn give_up(&mut self) {
        let ids = self.shared.table().ids();
        for id in ids {
            let error = ErrorData::new(INPUT_CLOSED, "cancelled: input closed", None);
            let answer = json!({"jsonrpc": "2.0", "id": id, "error": error});
            self.replies.extend(self.shared.answer(&id, false, &answer));
        }
    }
}

/// Whether an answered request holds for the rest of the connection.
const fn is_standing(request: &ClientRequest) -> bool {
    matches!(
        request,
        ClientRequest::InitializeRequest(_)
            | ClientRequest::SubscribeRequest(_)
            | ClientRequest::UnsubscribeRequest(_)
            | ClientRequest::SetLevelRequest(_)
    )
}

impl Transport<RoleServer> for Stdio {
    type Error = io::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), io::Error>> + Send + 'static {
        let shared = Arc::clone(&self.shared);
        let line = shared.line(item);
        async move {
            match line {
                Some(line) => shared.write(&mut vec![line]).await,
                None => Ok(()),
            }
        }
    }

    async fn receive(&mut self) -> Option<Incoming> {
        loop {
            if let Stage::Over = self.stage {
                let limit = Duration::from_millis(LAST_WRITE_MS);
                let written = timeout(limit, self.write()).await;
                if !matches!(written, Ok(Ok(()))) {
                    tracing::info!("the client did not read its last answers");
                }
                self.ends.closed.cancel();
                return None;
            }
            if let Err(error) = self.write().await {
                tracing::info!(%error, "the client does not read any more");
                self.replies.clear();
                self.is_writing = false;
            }
            if let Some(message) = self.queue.pop_front() {
                if self.opens(&message) {
                    return Some(message);
                }
                continue;
            }
            match self.stage {
                Stage::Open => self.read().await,
                Stage::Draining(until) => {
                    Self::drain(&self.shared, until).await;
                    self.give_up();
                    self.stage = Stage::Over;
                }
                Stage::Over => {}
            }
        }
    }

    async fn close(&mut self) -> Result<(), io::Error> {
        Ok(())
    }
}

/// The id of a request made in the client's stead.
pub(super) fn replayed_id(line: u64) -> RequestId {
    RequestId::String(format!("ostler-replay-{line}").into())
}
