//! Requests that are refused before the engine is asked, in the audit log.

use ostler_engine::{Engine, RefusedRequest};
use ostler_interface::http::HttpProblem;
use ostler_model::Caller;

/// Records in the audit log that a request was refused with this problem.
pub(crate) fn record_refusal(
    engine: &Engine,
    caller: &Caller,
    request: RefusedRequest,
    problem: &HttpProblem,
) {
    let HttpProblem(problem) = problem;
    engine.record_refusal(caller, request, problem.code.0, &problem.message);
}
