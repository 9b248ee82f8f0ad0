//! What reading and writing one connection share.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::RoleServer;
use rmcp::model::{
    CancelledNotificationParam, GetMeta as _, JsonRpcMessage, RequestId, ServerNotification,
    ServerResult,
};
use rmcp::service::TxJsonRpcMessage;
use serde::Serialize;
use tokio::sync::{Mutex as Turns, Notify};

use super::connection_log::ConnectionLog;
use super::endpoint::StdioSink;
use super::record::OutputKind;
use super::request_table::{AnswerRoute, RequestTable};

/// Requests of ours to the client per service: each service numbers them from another one, so
/// that an answer to an earlier service is not taken for one to this.
const REQUEST_IDS: i64 = 1 << 32;

/// Shared by the transport and the answers under way.
#[derive(Debug)]
pub(super) struct StdioShared {
    pub(super) log: Arc<ConnectionLog>,
    sink: Turns<StdioSink>,
    table: Mutex<RequestTable>,
    /// Told when a request was answered.
    pub(super) answered: Notify,
    /// Nothing of the service goes out any more.
    sealed: AtomicBool,
    first_id: i64,
}

/// A line on its way out.
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
            sealed: AtomicBool::new(false),
            first_id: i64::from(earlier_services) * REQUEST_IDS,
        }
    }

    pub(super) fn table(&self) -> MutexGuard<'_, RequestTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Drops what the service sends from now on.
    pub(super) fn seal(&self) {
        self.sealed.store(true, Ordering::Release);
    }

    /// The line that a message of the service is, where the client is to have it.
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

    /// The line that the answer to a request is, or completes; none where nobody waits for it,
    /// or others of its batch are not answered yet.
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

    /// The number of a request of ours, as the client knows it.
    fn to_client_id(&self, id: RequestId) -> RequestId {
        match id {
            RequestId::Number(number) => RequestId::Number(number + self.first_id),
            RequestId::String(_) => id,
        }
    }

    /// The number of a request of ours, from what the client calls it; none where it was an
    /// earlier service's.
    pub(super) fn from_client_id(&self, id: &RequestId) -> Option<RequestId> {
        let number = match id {
            RequestId::Number(number) => *number,
            RequestId::String(text) => text.parse().ok()?,
        };
        let number = number.checked_sub(self.first_id)?;
        (0..REQUEST_IDS)
            .contains(&number)
            .then_some(RequestId::Number(number))
    }

    /// Writes these lines, and what an earlier write left.
    ///
    /// # Errors
    /// When the client does not read any more, or the log cannot be written.
    pub(super) async fn write(&self, lines: &mut Vec<OutputLine>) -> io::Result<()> {
        let mut sink = self.sink.lock().await;
        for (output, line) in lines.drain(..) {
            sink.push(&self.log, output, &line)?;
        }
        sink.flush(&self.log).await
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

/// A message as a line.
pub(super) fn encode_line(message: &impl Serialize) -> Vec<u8> {
    let mut line = serde_json::to_vec(message).unwrap_or_default();
    line.push(b'\n');
    line
}
