//! The methods for contexts: directories with options that executions of a project share.

use ostler_engine::{ContextInfo, ContextRequest, Error};
use ostler_model::Caller;

use super::Engine;

impl Engine {
    /// The warm context of the caller for this project, or a new one; whether it is new. A start
    /// uses it with [`StartRequest::context`](crate::StartRequest::context).
    ///
    /// # Errors
    /// [`Error::Context`] where the request is invalid, the warm one is another than requested, or
    /// there are too many; as a start where an option is refused; [`Error::Storage`].
    pub async fn open_context(
        &self,
        caller: &Caller,
        request: ContextRequest,
    ) -> Result<(ContextInfo, bool), Error> {
        self.0.open_context(caller, request).await
    }

    /// The contexts that the caller sees, newest first.
    #[must_use]
    pub fn contexts(&self, caller: &Caller) -> Vec<ContextInfo> {
        self.0.contexts(caller)
    }

    /// One context.
    ///
    /// # Errors
    /// [`Error::Context`] where the caller sees none of this id.
    pub fn context(&self, caller: &Caller, id: &str) -> Result<ContextInfo, Error> {
        self.0.context(caller, id)
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
        self.0.remove_context(caller, id, force).await
    }
}
