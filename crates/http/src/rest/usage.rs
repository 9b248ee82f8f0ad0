//! Resource usage of an execution, and the network decisions of its allow list.

use axum::Json;
use axum::extract::State;
use ostler_api::{EgressPageBody, ResourcesBody};
use ostler_model::{ErrorCode, SnapshotRequest};

use super::caller::RequestCaller;
use super::extract::ExecutionPathId;
use super::query::QueryString;
use super::response::RestResult;
use super::state::RestState;
use ostler_interface::convert::resources_body;
use ostler_interface::egress_log;
use ostler_interface::http::HttpProblem;
use ostler_interface::params::{Parameter, ParameterKind};

/// The most decisions of one page.
const DECISIONS_LIMIT: i64 = 1_000;
/// Decisions of a page by default.
const DECISIONS: i64 = 100;

const PAGE: &[Parameter] = &[
    Parameter::optional(
        "from",
        ParameterKind::Integer(0, i64::MAX),
        "The `next` of the page before",
    )
    .with_default(0),
    Parameter::optional(
        "limit",
        ParameterKind::Integer(1, DECISIONS_LIMIT),
        "At most so many decisions",
    )
    .with_default(DECISIONS),
];

/// `GET /api/v1/executions/{id}/network`: the decisions of its allow list, oldest first; empty
/// without an allow list.
pub(super) async fn network(
    State(state): State<RestState>,
    RequestCaller(caller): RequestCaller,
    ExecutionPathId(id): ExecutionPathId,
    query_string: QueryString,
) -> RestResult<Json<EgressPageBody>> {
    let arguments = query_string.check(PAGE)?;
    let from = arguments.count("from").unwrap_or_default();
    let limit = arguments.count("limit").unwrap_or_default();
    let directory = state.engine.execution_dir(&caller, &id)?;
    let page = egress_log::read_page(
        &directory,
        from,
        usize::try_from(limit).unwrap_or(usize::MAX),
    );
    let to_problem = |error| {
        let message = format!("the log of the network cannot be read: {error}");
        HttpProblem::new(ErrorCode::OutputRetrieval, message, None)
    };
    Ok(Json(page.map_err(to_problem)?))
}

/// `GET /api/v1/executions/{id}/resources`.
pub(super) async fn resources(
    State(state): State<RestState>,
    RequestCaller(caller): RequestCaller,
    ExecutionPathId(id): ExecutionPathId,
    query_string: QueryString,
) -> RestResult<Json<ResourcesBody>> {
    query_string.check(&[])?;
    let info = state.engine.info(&caller, &id)?;
    let request = SnapshotRequest {
        disk: info.spec.policy.limits.disk_bytes.is_some(),
        ..SnapshotRequest::default()
    };
    let snapshot = state.engine.tree_snapshot(&caller, &id, request).await?;
    Ok(Json(resources_body(snapshot, &info)))
}
