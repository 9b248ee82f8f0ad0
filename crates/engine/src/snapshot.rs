//! One look at what a running tree is made of and uses, and where its files are.

use std::path::PathBuf;

use ostler_model::{Caller, SnapshotRequest, TreeSnapshot};

use crate::engine::Engine;
use crate::error::Error;

impl Engine {
    /// Looks at an execution's processes; what has ended has none.
    ///
    /// # Errors
    /// When the caller does not see it.
    pub async fn tree_snapshot(
        &self,
        caller: &Caller,
        id: &str,
        request: SnapshotRequest,
    ) -> Result<TreeSnapshot, Error> {
        let info = self.info(caller, id)?;
        if info.state.is_finished() {
            return Ok(TreeSnapshot::default());
        }
        // What the place does not know any more has no processes either.
        Ok(self
            .inner
            .backend
            .snapshot(info.id, request)
            .await
            .unwrap_or_default())
    }

    /// Where an execution's files are.
    ///
    /// # Errors
    /// When the caller does not see it.
    pub fn execution_dir(&self, caller: &Caller, id: &str) -> Result<PathBuf, Error> {
        let info = self.info(caller, id)?;
        Ok(self.inner.executions_dir().join(info.id.to_string()))
    }
}
