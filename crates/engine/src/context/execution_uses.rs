//! Which context each execution uses: while it runs, and while its overlay holds changes of files that
//! go with the context.

use ostler_lifecycle::context::ContextInput;
use ostler_model::{ContextId, ExecutionId};

use super::record::{ContextRecord, StoredStage};
use super::table::{ContextTable, ContextWork};
use crate::execution::ExecutionHandle;
use crate::hooks::ExecutionObserver;
use crate::overlay;

/// The use of a context by an execution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ExecutionUse {
    pub(super) context: ContextId,
    /// Whether it goes on after the execution's end: while its overlay holds undecided changes of files
    /// that are removed with the context.
    pub(super) outlives_end: bool,
}

impl ExecutionUse {
    /// The use of the context with this record.
    pub(super) fn of(execution: &ExecutionHandle, context: &ContextRecord) -> Self {
        Self {
            context: context.id.clone(),
            outlives_end: context.created.is_some() && overlay::may_hold_changes(execution),
        }
    }
}

impl ContextTable {
    /// The executions that use a context, oldest first.
    pub(super) fn executions(&self, id: &ContextId) -> Vec<ExecutionId> {
        let contexts = self.contexts.lock();
        let used = contexts.uses.iter().filter(|(_, it)| it.context == *id);
        let mut executions: Vec<ExecutionId> = used.map(|(execution, _)| *execution).collect();
        executions.sort_unstable();
        executions
    }

    /// Turns a use into that of an execution; false where the context is being stopped.
    pub(super) fn bind(&self, id: &ContextId, execution: &ExecutionHandle) -> bool {
        let record = execution.spec.request.as_deref();
        // A start that was sent again got the execution that the first one started.
        let runs_in_it = record.and_then(|it| it.context.as_ref()) == Some(id);
        let known = {
            let mut contexts = self.contexts.lock();
            let entry = contexts.entries.get(id).filter(|_| runs_in_it);
            let execution_use = entry.map(|entry| ExecutionUse::of(execution, &entry.record));
            let known = execution_use.is_none_or(|execution_use| {
                contexts.uses.insert(execution.id, execution_use).is_some()
            });
            if known {
                // It is counted already.
                let _decision = contexts.handle(id, ContextInput::Leave, None);
            }
            known
        };
        if known {
            self.changed();
        }
        if execution.is_finished() {
            self.execution_ended(execution.id);
        }
        !self.is_stopping(id)
    }

    /// Whether the context ends, or has ended, whatever uses it.
    fn is_stopping(&self, id: &ContextId) -> bool {
        let state = self.get(id).map(|entry| entry.lifecycle.state().clone());
        state.is_some_and(|state| StoredStage::of(&state) == Some(StoredStage::Stopping))
    }

    /// Whether the context that an execution uses is being stopped; none where it uses none.
    pub(super) fn is_use_stopped(&self, execution: ExecutionId) -> Option<bool> {
        let used = self.contexts.lock().uses.get(&execution).cloned()?;
        Some(self.is_stopping(&used.context))
    }

    /// The use of an execution that has ended is over, unless it may outlive that.
    pub(super) fn execution_ended(&self, execution: ExecutionId) {
        let mut contexts = self.contexts.lock();
        let outlives_end = contexts.uses.get(&execution).map(|it| it.outlives_end);
        match outlives_end {
            None => {}
            Some(true) => {
                contexts.work.push(ContextWork::CheckOverlay(execution));
                drop(contexts);
                self.changed();
            }
            Some(false) => {
                drop(contexts);
                self.leave_execution(execution);
            }
        }
    }

    /// The use of an execution is over.
    pub(super) fn leave_execution(&self, execution: ExecutionId) {
        let mut contexts = self.contexts.lock();
        if let Some(used) = contexts.uses.remove(&execution) {
            let _decision = contexts.handle(&used.context, ContextInput::Leave, None);
            drop(contexts);
            self.changed();
        }
    }
}

impl ExecutionObserver for ContextTable {
    fn ended(&self, id: ExecutionId) {
        self.execution_ended(id);
        self.retry_store();
    }

    fn overlay_decided(&self, id: ExecutionId) {
        self.leave_execution(id);
    }

    fn removed(&self, id: ExecutionId) {
        self.leave_execution(id);
        self.retry_store();
    }
}
