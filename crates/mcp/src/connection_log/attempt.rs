//! One attempt at a request that the next daemon may have to repeat when this process dies.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use ostler_engine::IdempotencyKey;
use ostler_model::{ErrorCode, ExecutionId};

use super::log::ConnectionLog;
use super::record::{LogRecord, StartBinding};
use super::state::PendingLine;
use ostler_interface::error::ApiError;

/// An extension of the request.
#[derive(Debug, Clone)]
pub(crate) struct RequestAttempt {
    log: Arc<ConnectionLog>,
    line: u64,
    member: u32,
    /// What earlier attempts started.
    bindings: Arc<[StartBinding]>,
    /// Whether an earlier attempt was dispatched to its tool.
    was_dispatched: bool,
    /// Number of execution ids requested by this attempt.
    next_start: Arc<AtomicU32>,
}

impl RequestAttempt {
    pub(crate) fn new(
        log: &Arc<ConnectionLog>,
        line: u64,
        member: u32,
        earlier: &PendingLine,
    ) -> Self {
        let bindings = earlier.bindings.iter().filter(|it| it.member == member);
        Self {
            log: Arc::clone(log),
            line,
            member,
            bindings: bindings.copied().collect(),
            was_dispatched: earlier.dispatched.contains(&member),
            next_start: Arc::default(),
        }
    }

    /// The id for the next execution this request starts: the one an earlier attempt had for it,
    /// else a new one, which is logged before it is used.
    ///
    /// # Errors
    /// When the log cannot be written.
    pub(crate) fn next_execution(&self) -> Result<ExecutionId, ApiError> {
        let start = self.next_start.fetch_add(1, Ordering::Relaxed);
        if let Some(earlier) = self.bindings.iter().find(|it| it.start == start) {
            return Ok(earlier.id);
        }
        let (id, member) = (ExecutionId::mint(), self.member);
        let binding = StartBinding { member, start, id };
        let line = self.line;
        self.append(&LogRecord::Bound { line, binding })?;
        Ok(id)
    }

    /// The key of what this request types, which is the one of earlier attempts.
    ///
    /// # Errors
    /// When the log cannot be written.
    pub(crate) fn next_input(&self) -> Result<IdempotencyKey, ApiError> {
        let id = self.next_execution()?;
        Ok(IdempotencyKey {
            id: id.into(),
            is_retry: self.has_started(id),
        })
    }

    /// Whether an earlier attempt had this id for an execution.
    pub(crate) fn has_started(&self, id: ExecutionId) -> bool {
        self.bindings.iter().any(|it| it.id == id)
    }

    /// Whether an earlier attempt dispatched a call that must not be repeated.
    pub(crate) const fn was_dispatched(&self) -> bool {
        self.was_dispatched
    }

    /// Records that the call is dispatched to its tool, and must not be repeated.
    ///
    /// # Errors
    /// When the log cannot be written.
    pub(crate) fn mark_dispatched(&self) -> Result<(), ApiError> {
        let (line, member) = (self.line, self.member);
        self.append(&LogRecord::Dispatched { line, member })
    }

    fn append(&self, record: &LogRecord) -> Result<(), ApiError> {
        self.log.append(record).map_err(|error| {
            let message = format!("the connection's log cannot be written: {error}");
            ApiError::new(ErrorCode::Internal, message)
        })
    }
}
