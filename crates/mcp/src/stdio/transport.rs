//! The library's transport over one connection: every line is answered, whatever its content.

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

use super::endpoint::StdioSource;
use super::request_table::AnswerRoute;
use super::shared_state::{OutputLine, StdioShared, encode_line, finished_batch_line};
use crate::connection_log::{
    InputLine as Text, LINE_BYTES, OutputKind, PendingLine, ReadOutcome, RequestAttempt,
};
use crate::json_rpc::{
    BATCH_REVISION, BatchMember, IncomingMessage, Malformed, ParsedLine, find_id, parse_members,
    parse_message, unsupported_batch,
};

/// How long requests under way have once the client has closed its side, in milliseconds.
const DRAIN_MS: u64 = 1_000;
/// How long the last answers may take to be written, in milliseconds.
const LAST_WRITE_MS: u64 = 1_000;
/// The error of a request whose client has closed its side, in the range JSON-RPC leaves to
/// implementations.
const INPUT_CLOSED: ErrorCode = ErrorCode(-32_000);

/// One connection.
#[derive(Debug)]
pub(crate) struct StdioTransport {
    source: StdioSource,
    shared: Arc<StdioShared>,
    /// Messages for the handler.
    incoming: VecDeque<IncomingMessage>,
    /// Lines for the client.
    outgoing: Vec<OutputLine>,
    /// Whether lines may be partly written.
    is_writing: bool,
    /// Whether the handler has received a first message that it accepts.
    is_open: bool,
    stage: TransportStage,
    tokens: StreamTokens,
}

/// Cancelled when the client disconnects.
#[derive(Debug, Clone)]
pub(crate) struct StreamTokens {
    /// The client has closed its side.
    pub(crate) input_closed: CancellationToken,
    /// No answer is expected any more.
    pub(crate) closed: CancellationToken,
}

#[derive(Debug, Clone, Copy)]
enum TransportStage {
    Open,
    /// The client has closed its side; requests under way have until then.
    Draining(Instant),
    Closed,
}

impl StdioTransport {
    /// A transport over a connection, with what an earlier daemon left of it.
    pub(super) fn new(source: StdioSource, shared: Arc<StdioShared>, ends: StreamTokens) -> Self {
        Self {
            source,
            shared,
            incoming: VecDeque::new(),
            outgoing: Vec::new(),
            is_writing: true,
            is_open: false,
            stage: TransportStage::Open,
            tokens: ends,
        }
    }

    /// Queues a message for the handler; the client gets no response to it.
    pub(super) fn enqueue(&mut self, message: IncomingMessage) {
        self.incoming.push_back(message);
    }

    /// Queues a line for the client.
    pub(super) fn push_reply(&mut self, line: OutputLine) {
        self.outgoing.push(line);
    }

    /// Handles a line of the client; `earlier` is what an earlier daemon did about it.
    pub(super) fn handle_line(&mut self, line: u64, text: &Text, earlier: &PendingLine) {
        let text = match text {
            Text::Whole(text) => text,
            Text::TooLong(prefix) => {
                let message = format!("a line must not be longer than {LINE_BYTES} bytes");
                return self.push_error(line, &Malformed::request(find_id(prefix), message));
            }
        };
        match parse_message(text) {
            ParsedLine::Blank | ParsedLine::Ignored => self.mark_settled(line),
            ParsedLine::Malformed(malformed) => self.push_error(line, &malformed),
            ParsedLine::Batch(members) => self.forward_batch(line, members, earlier),
            ParsedLine::Message(message) => {
                if !self.is_request(&message) {
                    self.mark_settled(line);
                }
                if let Err(refused) = self.forward(*message, line, None, earlier) {
                    self.push_error(line, &refused);
                }
            }
        }
    }

    const fn is_request(&self, message: &IncomingMessage) -> bool {
        matches!(message, JsonRpcMessage::Request(_))
    }

    fn mark_settled(&self, line: u64) {
        self.shared
            .log
            .with_state(|backlog| backlog.mark_settled(line));
    }

    fn push_error(&mut self, line: u64, malformed: &Malformed) {
        let standing = false;
        let output = OutputKind::Answer { line, standing };
        self.outgoing
            .push((output, encode_line(&malformed.response())));
    }

    /// Queues a message for the handler; `member` is its index in a batch.
    fn forward(
        &mut self,
        mut message: IncomingMessage,
        line: u64,
        member: Option<u32>,
        earlier: &PendingLine,
    ) -> Result<(), Malformed> {
        match &mut message {
            JsonRpcMessage::Request(request) => {
                let role = match member {
                    Some(_) => AnswerRoute::Member { batch: line },
                    None => AnswerRoute::Line {
                        line,
                        standing: is_standing(&request.request),
                    },
                };
                let admitted = self
                    .shared
                    .table()
                    .admit(&request.id, role, earlier.acknowledged);
                admitted.map_err(|error| {
                    Malformed::request(Some(request.id.clone()), error.message())
                })?;
                if self.shared.log.file().is_some() {
                    let (log, member) = (&self.shared.log, member.unwrap_or(0));
                    let attempt = RequestAttempt::new(log, line, member, earlier);
                    request.request.extensions_mut().insert(attempt);
                }
            }
            JsonRpcMessage::Notification(JsonRpcNotification {
                notification: ClientNotification::CancelledNotification(cancelled),
                ..
            }) => {
                if let Some(id) = &cancelled.params.request_id {
                    self.outgoing.extend(self.shared.on_cancelled(id));
                    // A request that the handler has not received yet is dropped.
                    let is_cancelled = |it: &IncomingMessage| matches!(it, JsonRpcMessage::Request(request) if request.id == *id);
                    self.incoming.retain(|it| !is_cancelled(it));
                }
            }
            JsonRpcMessage::Notification(_) => {}
            JsonRpcMessage::Response(response) => match self.shared.server_request_id(&response.id)
            {
                Some(id) => response.id = id,
                None => return Ok(()),
            },
            JsonRpcMessage::Error(error) => {
                if let Some(id) = &error.id {
                    let Some(id) = self.shared.server_request_id(id) else {
                        return Ok(());
                    };
                    error.id = Some(id);
                }
            }
        }
        self.incoming.push_back(message);
        Ok(())
    }

    fn forward_batch(&mut self, line: u64, values: Vec<Value>, earlier: &PendingLine) {
        let members = match self.parse_batch(values) {
            Ok(members) => members,
            Err(refused) => return self.push_error(line, &refused),
        };
        for (index, member) in members.into_iter().enumerate() {
            let index = u32::try_from(index).ok();
            let refused = match member {
                BatchMember::Ignored => continue,
                BatchMember::Refused(malformed) => malformed,
                BatchMember::Message(message) => {
                    match self.forward(*message, line, index, earlier) {
                        Ok(()) => continue,
                        Err(refused) => refused,
                    }
                }
            };
            self.shared.table().add_answer(line, refused.response());
        }
        let finished = finished_batch_line(&mut self.shared.table(), line);
        self.outgoing.extend(finished);
    }

    /// The members of a batch, where this connection takes batches.
    fn parse_batch(&self, values: Vec<Value>) -> Result<Vec<BatchMember>, Malformed> {
        let revision = self.shared.table().revision.clone();
        if revision != Some(BATCH_REVISION) {
            let revision = revision.as_ref().map(ProtocolVersion::as_str);
            return Err(unsupported_batch(revision));
        }
        parse_members(values)
    }

    /// Whether the handler can receive this message. Before the handshake it ends the connection on
    /// anything but a request.
    fn accepts(&mut self, message: &IncomingMessage) -> bool {
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
        if self.outgoing.is_empty() && !self.is_writing {
            return Ok(());
        }
        self.is_writing = true;
        self.shared.write(&mut self.outgoing).await?;
        self.is_writing = false;
        Ok(())
    }

    /// Reads once.
    async fn read_once(&mut self) {
        let filled = self.source.read_into_log(&self.shared.log).await;
        match filled {
            Ok(ReadOutcome::Lines(lines)) => self.handle_lines(&lines),
            Ok(ReadOutcome::Sealed) => pending().await,
            Ok(ReadOutcome::End) => self.on_input_closed(),
            Err(error) => {
                tracing::info!(%error, "the client cannot be read any more");
                self.on_input_closed();
            }
        }
    }

    fn handle_lines(&mut self, lines: &[(u64, Text)]) {
        let none = PendingLine::default();
        for (line, text) in lines {
            self.handle_line(*line, text, &none);
        }
    }

    /// The client has closed its side; a last line need not be terminated.
    fn on_input_closed(&mut self) {
        if let Ok(ReadOutcome::Lines(lines)) = self.shared.log.add_input(b"\n") {
            self.handle_lines(&lines);
        }
        self.tokens.input_closed.cancel();
        let deadline = Instant::now() + Duration::from_millis(DRAIN_MS);
        self.stage = TransportStage::Draining(deadline);
    }

    /// The client reads no answer any more: nothing new is begun for it.
    fn on_output_closed(&mut self) {
        self.incoming.clear();
        self.outgoing.clear();
        self.is_writing = false;
        self.tokens.input_closed.cancel();
        self.stage = TransportStage::Draining(Instant::now());
    }

    /// Waits until no answer is pending, or the deadline.
    async fn wait_until_idle(shared: &StdioShared, deadline: Instant) {
        let idle = async {
            loop {
                let answered = shared.answered.notified();
                if shared.table().is_idle() {
                    return;
                }
                answered.await;
            }
        };
        if timeout_at(deadline, idle).await.is_err() {
            tracing::info!("requests were under way when the client closed its side");
        }
    }

    /// Answers the requests under way.
    fn cancel_open_requests(&mut self) {
        let ids = self.shared.table().ids();
        for id in ids {
            let error = ErrorData::new(INPUT_CLOSED, "cancelled: input closed", None);
            let answer = json!({"jsonrpc": "2.0", "id": id, "error": error});
            self.outgoing
                .extend(self.shared.answer_line(&id, false, &answer));
        }
    }
}

/// Whether an answered request stays in effect for the rest of the connection.
const fn is_standing(request: &ClientRequest) -> bool {
    matches!(
        request,
        ClientRequest::InitializeRequest(_)
            | ClientRequest::SubscribeRequest(_)
            | ClientRequest::UnsubscribeRequest(_)
            | ClientRequest::SetLevelRequest(_)
    )
}

impl Transport<RoleServer> for StdioTransport {
    type Error = io::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), io::Error>> + Send + 'static {
        let shared = Arc::clone(&self.shared);
        let line = shared.to_line(item);
        async move {
            match line {
                Some(line) => shared.write(&mut vec![line]).await,
                None => Ok(()),
            }
        }
    }

    async fn receive(&mut self) -> Option<IncomingMessage> {
        loop {
            if let TransportStage::Closed = self.stage {
                let limit = Duration::from_millis(LAST_WRITE_MS);
                let written = timeout(limit, self.write()).await;
                if !matches!(written, Ok(Ok(()))) {
                    tracing::info!("the client did not read its last answers");
                }
                self.tokens.closed.cancel();
                return None;
            }
            if let Err(error) = self.write().await {
                tracing::info!(%error, "the client does not read any more");
                self.outgoing.clear();
                self.is_writing = false;
            }
            let is_open = matches!(self.stage, TransportStage::Open);
            if is_open && self.shared.output_closed.is_cancelled() {
                self.on_output_closed();
            }
            if let Some(message) = self.incoming.pop_front() {
                if self.accepts(&message) {
                    return Some(message);
                }
                continue;
            }
            match self.stage {
                TransportStage::Open => {
                    let output_closed = self.shared.output_closed.clone();
                    tokio::select! {
                        biased;
                        () = output_closed.cancelled() => {}
                        () = self.read_once() => {}
                    }
                }
                TransportStage::Draining(until) => {
                    Self::wait_until_idle(&self.shared, until).await;
                    self.cancel_open_requests();
                    self.stage = TransportStage::Closed;
                }
                TransportStage::Closed => {}
            }
        }
    }

    async fn close(&mut self) -> Result<(), io::Error> {
        Ok(())
    }
}

/// The id of a request replayed on the client's behalf.
pub(super) fn replayed_id(line: u64) -> RequestId {
    RequestId::String(format!("ostler-replay-{line}").into())
}
