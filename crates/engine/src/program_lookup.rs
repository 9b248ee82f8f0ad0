//! Looks up whether a program exists, before anything is started.

use crate::admission::{environment, program};
use crate::engine::Engine;
use crate::request::StartRequest;

impl Engine {
    /// Whether a program of this name is in the `PATH` that the request's command would have.
    #[must_use]
    pub fn has_program(&self, request: &StartRequest, name: &str) -> bool {
        let settings = &self.inner.settings;
        let env = environment::build(settings, request, request.inherit_env.unwrap_or(false));
        let path = environment::value(&env, b"PATH")
            .cloned()
            .unwrap_or_default();
        program::locate(name, &path, &request.cwd).is_some()
    }
}
