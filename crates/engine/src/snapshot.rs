//! A snapshot of a running process tree and its resource usage, and the location of an execution's
//! files.

use std::path::PathBuf;

use ostler_model::{Caller, SnapshotRequest, TreeSnapshot};

use crate::engine::Engine;
use crate::error::Error;

impl Engine {
    /// Takes a snapshot of an execution's processes; an ended execution has none.
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
        // What the backend does not know any more has no processes either.
        Ok(self
            .inner
            .backend
            .snapshot(info.id, request)
            .await
            .unwrap_or_default())
    }

    /// The directory of an execution's files.
    ///
    /// # Errors
    /// When the caller does not see it.
    pub fn execution_dir(&self, caller: &Caller, id: &str) -> Result<PathBuf, Error> {
        let info = self.info(caller, id)?;
        Ok(self.inner.executions_dir().join(info.id.to_string()))
    }
}
