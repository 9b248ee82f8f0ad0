//! One look at what a running tree is made of and uses (B6), and where its files are.

use std::path::PathBuf;

use ostler_model::{Caller, Evidence, Observation};

use crate::engine::Engine;
use crate::error::Error;

impl Engine {
    /// Looks at an execution's processes; what has ended has none.
    ///
    /// # Errors
    /// When the caller does not see it.
    pub async fn observe(
        &self,
        caller: &Caller,
        id: &str,
        what: Observation,
    ) -> Result<Evidence, Error> {
        let info = self.info(caller, id)?;
        if info.state.is_finished() {
            return Ok(Evidence::default());
        }
        // What the place does not know any more has no processes either.
        Ok(self
            .core
            .place
            .observe(info.id, what)
            .await
            .unwrap_or_default())
    }

    /// Where an execution's files are.
    ///
    /// # Errors
    /// When the caller does not see it.
    pub fn directory(&self, caller: &Caller, id: &str) -> Result<PathBuf, Error> {
        let info = self.info(caller, id)?;
        Ok(self.core.executions().join(info.id.to_string()))
    }
}
