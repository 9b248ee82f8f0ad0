//! [`ContextUse`]: a start that a context let in.

use std::sync::Arc;

use ostler_lifecycle::context::{ContextDecision, ContextInput};
use ostler_model::ContextId;

use super::table::ContextTable;
use crate::error::ContextError;
use crate::execution::ExecutionHandle;

/// A use of a context, which is over when this is dropped, or when the execution that it was bound
/// to ends.
#[derive(Debug)]
pub(super) struct ContextUse {
    table: Arc<ContextTable>,
    id: ContextId,
    is_bound: bool,
}

impl ContextUse {
    /// A use of this context.
    ///
    /// # Errors
    /// When its lifecycle refuses it, or it is over.
    pub(super) fn enter(table: &Arc<ContextTable>, id: &ContextId) -> Result<Self, ContextError> {
        match table.handle(id, ContextInput::Enter) {
            Some(ContextDecision::Admit) => Ok(Self {
                table: Arc::clone(table),
                id: id.clone(),
                is_bound: false,
            }),
            Some(ContextDecision::Refuse(refusal)) => Err(table.refusal(id, refusal)),
            Some(
                ContextDecision::Nothing
                | ContextDecision::StopUses
                | ContextDecision::RemoveFiles
                | ContextDecision::Forget,
            )
            | None => Err(ContextError::NotFound),
        }
    }

    /// The use is that of this execution from now on.
    ///
    /// # Errors
    /// When the context is being stopped: the execution must not go on.
    pub(super) fn bind(mut self, execution: &ExecutionHandle) -> Result<(), ContextError> {
        self.is_bound = true;
        if self.table.bind(&self.id, execution) {
            return Ok(());
        }
        Err(ContextError::NotReady {
            id: self.id.clone(),
            state: "ending",
        })
    }
}

impl Drop for ContextUse {
    fn drop(&mut self) {
        if !self.is_bound {
            let _decision = self.table.handle(&self.id, ContextInput::Leave);
        }
    }
}
