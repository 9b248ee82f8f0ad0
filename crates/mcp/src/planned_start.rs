//! The id of the execution that a request over HTTP starts, chosen before it starts: where its
//! answer is lost, the client can be told what it started.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ostler_engine::StartGuard;
use ostler_model::ExecutionId;
use parking_lot::Mutex;

/// An extension of the request. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct PlannedStart(Arc<PlannedStartInner>);

#[derive(Debug)]
struct PlannedStartInner {
    id: ExecutionId,
    is_used: AtomicBool,
    /// What the answer names, until a client reads it.
    unread: Mutex<Vec<StartGuard>>,
}

impl PlannedStart {
    pub(super) fn new() -> Self {
        Self(Arc::new(PlannedStartInner {
            id: ExecutionId::mint(),
            is_used: AtomicBool::new(false),
            unread: Mutex::default(),
        }))
    }

    /// The id, whether or not anything was started.
    pub(super) fn id(&self) -> ExecutionId {
        self.0.id
    }

    /// The id for the first execution that the request starts; none for further ones.
    pub(super) fn next_execution(&self) -> Option<ExecutionId> {
        (!self.0.is_used.swap(true, Ordering::Relaxed)).then_some(self.0.id)
    }

    /// The answer names these executions: they end with the last clone, unless it is
    /// [delivered](Self::deliver).
    pub(super) fn add_unread(&self, start_guards: Vec<StartGuard>) {
        self.0.unread.lock().extend(start_guards);
    }

    /// A client gets the answer: what it names continues.
    pub(super) fn deliver(&self) {
        let start_guards = std::mem::take(&mut *self.0.unread.lock());
        for start_guard in start_guards {
            let id = start_guard.id();
            if let Err(error) = start_guard.detach() {
                tracing::debug!(%id, %error, "its answer comes too late");
            }
        }
    }
}
