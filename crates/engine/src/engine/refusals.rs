//! The API of [`Engine`] for requests that an interface refuses itself.

use ostler_model::{Caller, ErrorCode};

use super::Engine;
use crate::refused_request::RefusedRequest;

impl Engine {
    /// Records in the audit log that a request was refused before the engine was asked. What the
    /// engine refuses to start, and contexts, it records itself.
    pub fn record_refusal(
        &self,
        caller: &Caller,
        request: RefusedRequest,
        code: ErrorCode,
        message: &str,
    ) {
        let (owner, message) = (request.owner(caller), message.to_owned());
        self.inner
            .record_refusal(&owner, request.into_detail(), code, message);
    }
}
