//! The id of the execution that a request over HTTP starts, chosen before it starts: where its
//! answer is lost, the client can be told what it started.

use std::fmt;
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
    unread: Mutex<Option<UnreadAnswer>>,
}

/// An answer that no client has read.
struct UnreadAnswer {
    start_guards: Vec<StartGuard>,
    /// Called with the ids that a client has got.
    on_delivery: Box<dyn FnOnce(Vec<ExecutionId>) + Send>,
}

impl fmt::Debug for UnreadAnswer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut answer = formatter.debug_struct("UnreadAnswer");
        answer.field("start_guards", &self.start_guards);
        answer.finish_non_exhaustive()
    }
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
    /// [delivered](Self::deliver). `on_delivery` gets the ids in it then.
    pub(super) fn set_unread(
        &self,
        start_guards: Vec<StartGuard>,
        on_delivery: impl FnOnce(Vec<ExecutionId>) + Send + 'static,
    ) {
        *self.0.unread.lock() = Some(UnreadAnswer {
            start_guards,
            on_delivery: Box::new(on_delivery),
        });
    }

    /// A client gets the answer: what it names continues. Must be called within a tokio runtime.
    pub(super) fn deliver(&self) {
        let answer = self.0.unread.lock().take();
        if let Some(answer) = answer {
            (answer.on_delivery)(detach(answer.start_guards));
        }
    }

    /// What the answer names continues, though no client gets it.
    pub(super) fn detach(&self) {
        let answer = self.0.unread.lock().take();
        if let Some(answer) = answer {
            detach(answer.start_guards);
        }
    }
}

/// The ids of those that continue.
fn detach(start_guards: Vec<StartGuard>) -> Vec<ExecutionId> {
    let mut ids = Vec::with_capacity(start_guards.len());
    for start_guard in start_guards {
        let id = start_guard.id();
        match start_guard.detach() {
            Ok(()) => ids.push(id),
            Err(error) => tracing::debug!(%id, %error, "its answer comes too late"),
        }
    }
    ids
}
