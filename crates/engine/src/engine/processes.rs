//! The API of [`Engine`] for processes and files: snapshots of a tree, directories, programs.

use std::path::PathBuf;

use ostler_model::{Caller, SnapshotRequest, TreeSnapshot};

use super::Engine;
use crate::admission::{environment, isolation_level, program};
use crate::error::Error;
use crate::request::StartRequest;

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

    /// Whether a program of this name is in the `PATH` that the request's command would have.
    #[must_use]
    pub fn has_program(&self, request: &StartRequest, name: &str) -> bool {
        let settings = &self.inner.settings;
        if isolation_level::runs_in_container(&settings.isolation, request) {
            return true;
        }
        let env = environment::build(
            settings,
            request,
            request.options.inherit_env.unwrap_or(false),
        );
        let path = environment::value(&env, b"PATH")
            .cloned()
            .unwrap_or_default();
        program::locate(name, &path, &request.cwd).is_some()
    }
}
