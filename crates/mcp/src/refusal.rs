//! Requests that are refused before the engine is asked, in the audit log.

use ostler_engine::{Engine, RefusedRequest};
use ostler_interface::error::ApiError;
use ostler_model::Caller;

/// Records in the audit log what is refused before the engine is asked.
pub(super) fn record_refusal(
    engine: &Engine,
    caller: &Caller,
    request: RefusedRequest,
    failure: &ApiError,
) {
    engine.record_refusal(caller, request, failure.code, &failure.message());
}
