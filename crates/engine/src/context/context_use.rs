//! [`ContextUse`]: a start that a context let in.

use std::sync::Arc;

use ostler_lifecycle::context::ContextInput;
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
    /// A use that the lifecycle admitted.
    pub(super) const fn new(table: Arc<ContextTable>, id: ContextId) -> Self {
        Self {
            table,
            id,
            is_bound: false,
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
