//! The id of the execution that a request over HTTP starts, chosen before it starts: where its
//! answer is lost, the client can be told what it started.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ostler_model::ExecutionId;

/// An extension of the request.
#[derive(Debug, Clone)]
pub(super) struct PlannedStart {
    id: ExecutionId,
    is_used: Arc<AtomicBool>,
}

impl PlannedStart {
    pub(super) fn new() -> Self {
        Self {
            id: ExecutionId::mint(),
            is_used: Arc::default(),
        }
    }

    /// The id, whether or not anything was started.
    pub(super) const fn id(&self) -> ExecutionId {
        self.id
    }

    /// The id for the first execution that the request starts; none for further ones.
    pub(super) fn next_execution(&self) -> Option<ExecutionId> {
        (!self.is_used.swap(true, Ordering::Relaxed)).then_some(self.id)
    }
}
