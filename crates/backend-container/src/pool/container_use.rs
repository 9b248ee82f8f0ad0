//! [`ContainerUse`]: one execution in one container.

use std::sync::Arc;

use ostler_model::ExecutionId;

use super::driver::ContainerPool;
use crate::identity::ContainerName;

/// Counts as a use of a container while it exists, and is recorded for the next daemon.
#[derive(Debug)]
pub(crate) struct ContainerUse {
    pool: Arc<ContainerPool>,
    id: ExecutionId,
    name: ContainerName,
    /// Whether the execution outlives this.
    leaves: bool,
}

impl ContainerUse {
    /// A use that the pool has counted already.
    pub(super) const fn new(
        pool: Arc<ContainerPool>,
        id: ExecutionId,
        name: ContainerName,
    ) -> Self {
        Self {
            pool,
            id,
            name,
            leaves: false,
        }
    }

    /// The container.
    pub(crate) const fn name(&self) -> &ContainerName {
        &self.name
    }

    /// The execution runs on without this daemon: the next one finds it in the container.
    pub(crate) fn leave(mut self) {
        self.leaves = true;
    }
}

impl Drop for ContainerUse {
    fn drop(&mut self) {
        if !self.leaves {
            self.pool.release(self.id, &self.name);
        }
    }
}
