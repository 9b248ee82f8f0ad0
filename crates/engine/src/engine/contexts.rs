//! The API of [`Engine`] for contexts.

use ostler_model::Caller;

use super::Engine;
use crate::context::{ContextInfo, ContextRequest};
use crate::error::Error;

impl Engine {
    /// The warm context of the caller for this project, or a new one; whether it is new. Requests
    /// at the same time get the same one.
    ///
    /// A warm one is checked first; one that fails is ended, and replaced. Starts use it with
    /// [`StartRequest::context`](crate::StartRequest::context).
    ///
    /// # Errors
    /// [`Error::Context`] where the request is invalid, the warm one is another than requested, or
    /// there are too many; as admission where an option is refused; [`Error::Storage`].
    pub async fn open_context(
        &self,
        caller: &Caller,
        request: ContextRequest,
    ) -> Result<(ContextInfo, bool), Error> {
        self.contexts.open(caller, request).await
    }

    /// The contexts that the caller sees, newest first.
    #[must_use]
    pub fn contexts(&self, caller: &Caller) -> Vec<ContextInfo> {
        self.contexts.list(caller)
    }

    /// One context.
    ///
    /// # Errors
    /// [`ContextError::NotFound`](crate::ContextError::NotFound).
    pub fn context(&self, caller: &Caller, id: &str) -> Result<ContextInfo, Error> {
        self.contexts.find(caller, id)
    }

    /// Ends a context and removes the directory that Ostler created for it; returns when it is
    /// gone. One in use is refused, unless `force` stops its executions and discards their undecided
    /// overlays.
    ///
    /// # Errors
    /// [`Error::Context`] where it is unknown or in use, or not all of its files were removed.
    pub async fn remove_context(
        &self,
        caller: &Caller,
        id: &str,
        force: bool,
    ) -> Result<(), Error> {
        self.contexts.remove(caller, id, force).await
    }
}
