//! Facts about a container, for logs and tests.

use std::fmt;

/// The container that an execution runs in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContainerFacts {
    /// The engine and its version: `Docker 20.10.24`.
    pub engine: String,
    /// The container's id.
    pub container_id: String,
    /// Its name.
    pub container_name: String,
    /// The id of its image.
    pub image_id: String,
    /// How a limit on the disk is enforced.
    pub disk: DiskEnforcement,
}

/// How a limit on the disk is enforced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiskEnforcement {
    /// The storage driver limits the container's own layer; the growth of the workspace is counted.
    StorageDriver,
    /// The growth of the workspace is counted; the container's own layer is not limited.
    Accounting,
}

impl fmt::Display for DiskEnforcement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::StorageDriver => "storage driver",
            Self::Accounting => "accounting",
        })
    }
}
