//! Facts about a container, for logs and tests.

use ostler_model::DiskEnforcement;

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
