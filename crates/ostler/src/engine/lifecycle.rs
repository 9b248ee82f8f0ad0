//! The engine itself: what it supports, its settings, the end of a session and of the engine.

use ostler_engine::{Error, Settings};
use ostler_model::{Caller, CapabilitySet};

use super::Engine;

impl Engine {
    /// What the backend can enforce.
    #[must_use]
    pub fn capabilities(&self) -> &CapabilitySet {
        self.0.capabilities()
    }

    /// The settings the engine was opened with.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        self.0.settings()
    }

    /// Ends the caller's session: finite executions stop and are cleaned, services and starts with
    /// `keep` pass to the project.
    ///
    /// # Errors
    /// The first stop that failed; the others are performed anyway.
    pub async fn end_session(&self, caller: &Caller) -> Result<(), Error> {
        self.0.end_session(caller).await
    }

    /// Shuts the engine down: executions that are not durable or whose id was not disclosed are
    /// stopped, the others run on without it. Every later request is refused.
    pub async fn shutdown(&self) {
        self.0.shutdown().await;
    }

    /// Resolves when the engine begins to shut down.
    pub async fn closing(&self) {
        self.0.closing().await;
    }
}
