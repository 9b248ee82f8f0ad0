//! The API of [`Engine`] for callers that are limited to projects.

use std::path::Path;

use ostler_model::Caller;

use super::Engine;
use crate::error::Error;
use crate::project;

impl Engine {
    /// Refuses a request about what files in a directory say, where the caller is limited to
    /// projects that the directory is in none of. Reads links.
    ///
    /// # Errors
    /// [`Error::Project`].
    pub fn check_directory(&self, caller: &Caller, directory: &Path) -> Result<(), Error> {
        Ok(project::check_directory(caller, directory)?)
    }

    /// Refuses a request that would create something in another project than its caller may change,
    /// before anything else is done for it.
    ///
    /// # Errors
    /// [`Error::Project`].
    pub fn check_project(&self, caller: &Caller, project: &str) -> Result<(), Error> {
        Ok(project::check_project(caller, Some(project))?)
    }
}
