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

use super::endpoint::Sink;
use super::log::Log;
use super::record::Output;
use super::table::{Role, Table};

/// Requests of ours to the client per service: each service numbers them from another one, so
/// that an answer to an earlier service is not taken for one to this.
const REQUEST_IDS: i64 = 1 << 32;

/// Shared by the transport and the answers under way.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) log: Arc<Log>,
    sink: Turns<Sink>,
    table: Mutex<Table>,
    /// Told when a request was answered.
    pub(super) answered: Notify,
    /// Nothing of the service goes out any more.
    sealed: AtomicBool,
    first_id: i64,
}

/// A line on its way out.
pub(super) type Line = (Output, Vec<u8>);

impl Shared {
    pub(super) fn new(log: Log, sink: Sink) -> Self {
        let earlier = log.with(|backlog| backlog.generation()).saturating_sub(1);
        Self {
            log: Arc::new(log),
            sink: Turns::new(sink),
            table: Mutex::default(),
            answered: Notify::new(),
            sealed: AtomicBool::new(false),
            first_id: i64::from(earlier) * REQUEST_IDS,
        }
    }

    pub(super) fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Drops what the service sends from now on.
    pub(super) fn seal(&self) {
        self.sealed.store(true, Ordering::Release);
    }

    /// The line that a message of the service is, where the client is to have it.
    pub(super) fn line(&self, message: TxJsonRpcMessage<RoleServer>) -> Option<Line> {
        if self.sealed.load(Ordering::Acquire) {
            return None;
        }
        match message {
            JsonRpcMessage::Response(response) => {
                if let ServerResult::InitializeResult(result) = &response.result {
                    self.table().revision = Some(result.protocol_version.clone());
                }
                self.answer(&response.id, true, &response)
            }
            JsonRpcMessage::Error(error) => match &error.id {
                Some(id) => self.answer(id, false, &error),
                None => Some((Output::Message, encoded(&error))),
            },
            JsonRpcMessage::Request(mut request) => {
                request.id = self.outward(request.id);
                Some((Output::Message, encoded(&request)))
            }
            JsonRpcMessage::Notification(mut notification) => {
                let inner = &mut notification.notification;
                let mut output = Output::Message;
                if let ServerNotification::SubscriptionsAcknowledgedNotification(_) = inner {
                    if let Some(id) = inner.get_meta().subscription_id() {
                        output = self.table().acknowledge(&id)?;
                    }
                } else if let ServerNotification::CancelledNotification(cancelled) = inner {
                    let CancelledNotificationParam { request_id, .. } = &mut cancelled.params;
                    *request_id = request_id.take().map(|id| self.outward(id));
                }
                Some((output, encoded(&notification)))
            }
        }
    }

    /// The line that the answer to a request is, or completes; none where nobody waits for it,
    /// or others of its batch are not answered yet.
    pub(super) fn answer(
        &self,
        id: &RequestId,
        is_ok: bool,
        answer: &impl Serialize,
    ) -> Option<Line> {
        let mut table = self.table();
        let role = table.answered(id, is_ok);
        self.answered.notify_waiters();
        match role? {
            Role::Line { line, standing } => {
                Some((Output::Answer { line, standing }, encoded(answer)))
            }
            Role::Member { batch } => {
                let answer = serde_json::to_value(answer).unwrap_or_default();
                table.note(batch, answer);
                finished(&mut table, batch)
            }
            Role::Replayed => None,
        }
    }

    /// A request was cancelled: the line that this completes.
    pub(super) fn cancelled(&self, id: &RequestId) -> Option<Line> {
        let mut table = self.table();
        let role = table.answered(id, false);
        self.answered.notify_waiters();
        match role? {
            Role::Line { line, .. } => {
                self.log.with(|backlog| backlog.settle(line));
                None
            }
            Role::Member { batch } => finished(&mut table, batch),
            Role::Replayed => None,
        }
    }

    /// The number of a request of ours, as the client knows it.
    fn outward(&self, id: RequestId) -> RequestId {
        match id {
            RequestId::Number(number) => RequestId::Number(number + self.first_id),
            RequestId::String(_) => id,
        }
    }

    /// The number of a request of ours, from what the client calls it; none where it was an
    /// earlier service's.
    pub(super) fn inward(&self, id: &RequestId) -> Option<RequestId> {
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
    pub(super) async fn write(&self, lines: &mut Vec<Line>) -> io::Result<()> {
        let mut sink = self.sink.lock().await;
        for (output, line) in lines.drain(..) {
            sink.push(&self.log, output, &line)?;
        }
        sink.flush(&self.log).await
    }
}

/// The answer to a batch, once it is complete.
pub(super) fn finished(table: &mut Table, batch: u64) -> Option<Line> {
    let answer = table.finished(batch)?;
    let output = Output::Answer {
        line: batch,
        standing: false,
    };
    let line = if answer.is_null() {
        Vec::new()
    } else {
        encoded(&answer)
    };
    Some((output, line))
}

/// A message as a line.
pub(super) fn encoded(message: &impl Serialize) -> Vec<u8> {
    let mut line = serde_json::to_vec(message).unwrap_or_default();
    line.push(b'\n');
    line
}
