//! The name of an execution backend.

use serde::{Deserialize, Serialize};

/// The name of a backend: `local` or `container`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BackendName(pub String);

impl BackendName {
    /// The backend of this machine.
    #[must_use]
    pub fn local() -> Self {
        Self("local".to_owned())
    }

    /// The backend of a container engine.
    #[must_use]
    pub fn container() -> Self {
        Self("container".to_owned())
    }
}
