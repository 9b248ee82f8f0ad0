//! The command policy: its rules, and its verdict on a command that is not started.

use std::path::Path;

use axum::Json;
use axum::extract::State;
use ostler_api::{PolicyBody, PolicyVerdictBody, StartBody};
use ostler_engine::Error;
use ostler_interface::convert::{policy_body, policy_verdict_body};
use ostler_interface::http::HttpProblem;
use ostler_interface::params::{Parameter, ParameterKind};
use ostler_model::{ByteString, ErrorCode};

use super::caller::RequestCaller;
use super::extract::JsonBody;
use super::query::QueryString;
use super::response::RestResult;
use super::start_request::start_request;
use super::state::RestState;

const RULES: &[Parameter] = &[Parameter::optional(
    "cwd",
    ParameterKind::Text,
    "The absolute path of a directory, to include the rules of its workspace",
)];

/// `GET /api/v1/policy`: the rules in force.
pub(super) async fn rules(
    State(state): State<RestState>,
    RequestCaller(caller): RequestCaller,
    query_string: QueryString,
) -> RestResult<Json<PolicyBody>> {
    let cwd = query_string.check(RULES)?.text("cwd");
    if cwd.as_ref().is_some_and(|cwd| !cwd.starts_with('/')) {
        return Err(HttpProblem::value(
            "parameter 'cwd' is no absolute path; allowed: the absolute path of a directory",
        ));
    }
    if let Some(cwd) = &cwd {
        state.engine.check_directory(&caller, Path::new(cwd))?;
    }
    // No workspace is above the root.
    let cwd = ByteString::from(cwd.unwrap_or_else(|| "/".to_owned()));
    let policy = evaluate(move || state.engine.policy_in(&cwd)).await?;
    Ok(Json(policy_body(policy.as_ref())))
}

/// `POST /api/v1/policy/check`: the verdict on a start. Nothing is started, and nobody is asked.
pub(super) async fn check(
    State(state): State<RestState>,
    RequestCaller(caller): RequestCaller,
    JsonBody(body): JsonBody<StartBody>,
) -> RestResult<Json<PolicyVerdictBody>> {
    let request = start_request(body);
    state
        .engine
        .check_directory(&caller, request.cwd.as_path())?;
    let verdict = evaluate(move || state.engine.policy_verdict(&request)).await?;
    Ok(Json(policy_verdict_body(verdict)))
}

/// Runs what reads files off the async threads.
async fn evaluate<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> RestResult<T> {
    let done = tokio::task::spawn_blocking(work).await;
    Ok(done.map_err(|error| HttpProblem::new(ErrorCode::Internal, error.to_string(), None))??)
}
