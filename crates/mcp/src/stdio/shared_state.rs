//! State shared by reading and writing one connection.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::{Mutex, MutexGuard};
use rmcp::RoleServer;
use rmcp::model::{
    CancelledNotificationParam, GetMeta as _, JsonRpcMessage, RequestId, ServerNotification,
    ServerResult,
};
use rmcp::service::TxJsonRpcMessage;
use serde::Serialize;
use tokio::sync::{Mutex as Turns, Notify};
use tokio_util::sync::CancellationToken;

use super::endpoint::StdioSink;
use super::request_table::{AnswerRoute, RequestTable};
use crate::connection_log::{ConnectionLog, OutputKind};

/// The number of request ids per daemon: each daemon starts from another one, so that an answer to
/// an earlier daemon is not mistaken for one to this.
const REQUEST_IDS: i64 = 1 << 32;

/// State shared by the transport and pending answers.
#[derive(Debug)]
pub(super) struct StdioShared {
    pub(super) log: Arc<ConnectionLog>,
    sink: Turns<StdioSink>,
    table: Mutex<RequestTable>,
    /// Notified when a request was answered.
    pub(super) answered: Notify,
    /// Cancelled when the client does not read any more.
    pub(super) output_closed: CancellationToken,
    /// Whether the daemon's messages are dropped.
    sealed: AtomicBool,
    first_id: i64,
}

/// A line to be written.
pub(super) type OutputLine = (OutputKind, Vec<u8>);

impl StdioShared {
    pub(super) fn new(log: ConnectionLog, sink: StdioSink) -> Self {
        let earlier_services = log
            .with_state(|backlog| backlog.generation())
            .saturating_sub(1);
        Self {
            log: Arc::new(log),
            sink: Turns::new(sink),
            table: Mutex::default(),
            answered: Notify::new(),
            output_closed: CancellationToken::new(),
            sealed: AtomicBool::new(false),
            first_id: i64::from(earlier_services) * REQUEST_IDS,
        }
    }

    pub(super) fn table(&self) -> MutexGuard<'_, RequestTable> {
        self.table.lock()
    }

    /// Drops the daemon's messages from now on.
    pub(super) fn seal(&self) {
        self.sealed.store(true, Ordering::Release);
    }

    /// The line of a message, if the client is to receive it.
    pub(super) fn to_line(&self, message: TxJsonRpcMessage<RoleServer>) -> Option<OutputLine> {
        if self.sealed.load(Ordering::Acquire) {
            return None;
        }
        match message {
            JsonRpcMessage::Response(response) => {
                if let ServerResult::InitializeResult(result) = &response.result {
                    self.table().revision = Some(result.protocol_version.clone());
                }
                self.answer_line(&response.id, true, &response)
            }
            JsonRpcMessage::Error(error) => match &error.id {
                Some(id) => self.answer_line(id, false, &error),
                None => Some((OutputKind::Message, encode_line(&error))),
            },
            JsonRpcMessage::Request(mut request) => {
                request.id = self.to_client_id(request.id);
                Some((OutputKind::Message, encode_line(&request)))
            }
            JsonRpcMessage::Notification(mut notification) => {
                let inner = &mut notification.notification;
                let mut output = OutputKind::Message;
                if let ServerNotification::SubscriptionsAcknowledgedNotification(_) = inner {
                    if let Some(id) = inner.get_meta().subscription_id() {
                        output = self.table().acknowledge(&id)?;
                    }
                } else if let ServerNotification::CancelledNotification(cancelled) = inner {
                    let CancelledNotificationParam { request_id, .. } = &mut cancelled.params;
                    *request_id = request_id.take().map(|id| self.to_client_id(id));
                }
                Some((output, encode_line(&notification)))
            }
        }
    }

    /// The line with the answer to a request, or completed by it; none where it is no longer
    /// expected, or other members of its batch are unanswered.
    pub(super) fn answer_line(
        &self,
        id: &RequestId,
        is_ok: bool,
        answer: &impl Serialize,
    ) -> Option<OutputLine> {
        let mut table = self.table();
        let role = table.remove_answered(id, is_ok);
        self.answered.notify_waiters();
        match role? {
            AnswerRoute::Line { line, standing } => {
                Some((OutputKind::Answer { line, standing }, encode_line(answer)))
            }
            AnswerRoute::Member { batch } => {
                let answer = serde_json::to_value(answer).unwrap_or_default();
                table.add_answer(batch, answer);
                finished_batch_line(&mut table, batch)
            }
            AnswerRoute::Replayed => None,
        }
    }

    /// A request was cancelled: the line that this completes.
    pub(super) fn on_cancelled(&self, id: &RequestId) -> Option<OutputLine> {
        let mut table = self.table();
        let role = table.remove_answered(id, false);
        self.answered.notify_waiters();
        match role? {
            AnswerRoute::Line { line, .. } => {
                self.log.with_state(|backlog| backlog.mark_settled(line));
                None
            }
            AnswerRoute::Member { batch } => finished_batch_line(&mut table, batch),
            AnswerRoute::Replayed => None,
        }
    }

    /// The id of the server's request, as the client sees it.
    fn to_client_id(&self, id: RequestId) -> RequestId {
        match id {
            RequestId::Number(number) => RequestId::Number(number + self.first_id),
            RequestId::String(_) => id,
        }
    }

    /// The id of the server's request, from the client's; none where an earlier daemon made the
    /// request.
    pub(super) fn server_request_id(&self, id: &RequestId) -> Option<RequestId> {
        let number = match id {
            RequestId::Number(number) => *number,
            RequestId::String(text) => text.parse().ok()?,
        };
        let number = number.checked_sub(self.first_id)?;
        (0..REQUEST_IDS)
            .contains(&number)
            .then_some(RequestId::Number(number))
    }

    /// Writes these lines, after the rest of an earlier write.
    ///
    /// # Errors
    /// When the client does not read any more, or the log cannot be written.
    pub(super) async fn write(&self, lines: &mut Vec<OutputLine>) -> io::Result<()> {
        let mut sink = self.sink.lock().await;
        for (output, line) in lines.drain(..) {
            sink.push(&self.log, output, &line)?;
        }
        let written = sink.flush(&self.log).await;
        let is_closed = |error: &io::Error| {
            matches!(
                error.kind(),
                io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset
            )
        };
        if written.as_ref().is_err_and(is_closed) {
            self.output_closed.cancel();
        }
        written
    }
}

/// The answer to a batch, once it is complete.
pub(super) fn finished_batch_line(table: &mut RequestTable, batch: u64) -> Option<OutputLine> {
    let answer = table.take_finished(batch)?;
    let output = OutputKind::Answer {
        line: batch,
        standing: false,
    };
    let line = if answer.is_null() {
        Vec::new()
    } else {
        encode_line(&answer)
    };
    Some((output, line))
}

/// Encodes a message as a line.
pub(super) fn encode_line(message: &impl Serialize) -> Vec<u8> {
    let mut line = serde_json::to_vec(message).unwrap_or_default();
    line.push(b'\n');
    line
}
