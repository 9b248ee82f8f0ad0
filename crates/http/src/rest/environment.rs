//! The environment of an execution.

use axum::Json;
use axum::extract::State;
use ostler_api::EnvironmentBody;
use ostler_interface::convert::environment_body;

use super::caller::RequestCaller;
use super::extract::ExecutionPathId;
use super::query::QueryString;
use super::response::RestResult;
use super::state::RestState;

/// `GET /api/v1/executions/{id}/environment`: the variables that an execution was given, secrets
/// without their values.
pub(super) async fn environment(
    State(state): State<RestState>,
    RequestCaller(caller): RequestCaller,
    ExecutionPathId(id): ExecutionPathId,
    query_string: QueryString,
) -> RestResult<Json<EnvironmentBody>> {
    query_string.check(&[])?;
    let info = state.engine.info(&caller, &id)?;
    Ok(Json(environment_body(&info.spec.env)))
}
