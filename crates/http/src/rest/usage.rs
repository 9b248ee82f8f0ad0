//! Resource usage of an execution, now and over time, and the network decisions of its allow list.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use ostler_api::{EgressPageBody, ResourceListBody, ResourcesBody, UsageHistoryBody};
use ostler_engine::{ListFilter, UsageHistoryQuery, UsageResolution};
use ostler_model::status::ProcessStatus;
use ostler_model::{ErrorCode, SnapshotRequest};

use super::caller::RequestCaller;
use super::extract::ExecutionPathId;
use super::query::QueryString;
use super::response::RestResult;
use super::state::RestState;
use ostler_interface::convert::{execution_usage_body, resources_body, usage_history_body};
use ostler_interface::egress_log;
use ostler_interface::http::HttpProblem;
use ostler_interface::params::{Parameter, ParameterKind};
use ostler_interface::past_time::past_time;

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

/// The most points of one page; a history has fewer.
const POINTS_LIMIT: i64 = 1_000;
/// The longest time that one request waits for samples, in milliseconds.
const WAIT_LIMIT_MS: i64 = 60_000;

const HISTORY: &[Parameter] = &[
    Parameter::optional(
        "since",
        ParameterKind::Text,
        "Only later points: a time, how long ago, or the `next` of the page before",
    ),
    Parameter::optional(
        "resolution_s",
        ParameterKind::Choice(&["1", "10", "300"]),
        "Seconds of a point; absent: the finest that reaches back to since, or 10",
    ),
    Parameter::optional(
        "limit",
        ParameterKind::Integer(1, POINTS_LIMIT),
        "At most so many points",
    )
    .with_default(POINTS_LIMIT),
    Parameter::optional(
        "watch",
        ParameterKind::Flag,
        "Sample it every second for the next five seconds",
    ),
    Parameter::optional(
        "wait_ms",
        ParameterKind::Integer(0, WAIT_LIMIT_MS),
        "How long to wait where there are none yet, watching it",
    )
    .with_default(0),
];

/// `GET /api/v1/executions/{id}/network`: the decisions of the allow list of an execution, oldest
/// first; empty without an allow list.
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

/// `GET /api/v1/executions/{id}/resources`: what the processes of an execution use.
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
    let sample = state.engine.usage_now(&caller, &id).await?;
    Ok(Json(resources_body(snapshot, sample, &info)))
}

/// `GET /api/v1/executions/{id}/resources/history`: what it used over time, for plots and for those
/// who follow it.
pub(super) async fn history(
    State(state): State<RestState>,
    RequestCaller(caller): RequestCaller,
    ExecutionPathId(id): ExecutionPathId,
    query_string: QueryString,
) -> RestResult<Json<UsageHistoryBody>> {
    let mut arguments = query_string.check(HISTORY)?;
    let since = match arguments.text("since") {
        Some(given) => Some(past_time("since", &given)?),
        None => None,
    };
    let seconds = arguments
        .text("resolution_s")
        .and_then(|word| word.parse().ok());
    let limit = arguments.count("limit").unwrap_or_default();
    let query = UsageHistoryQuery {
        since,
        resolution: seconds.and_then(UsageResolution::from_seconds),
        limit: usize::try_from(limit).unwrap_or(usize::MAX),
    };
    if arguments.flag("watch") {
        state.engine.watch_usage(&caller, &id)?;
    }
    let wait = Duration::from_millis(arguments.count("wait_ms").unwrap_or_default());
    let history = state.engine.usage_history(&caller, &id, query, wait);
    let history = state.unless_shutting_down(history).await??;
    Ok(Json(usage_history_body(history)))
}

/// The most executions of one list.
const LISTED_LIMIT: i64 = 1_000;
/// Executions of a list by default.
const LISTED: i64 = 100;

const LIST: &[Parameter] = &[
    Parameter::optional(
        "limit",
        ParameterKind::Integer(1, LISTED_LIMIT),
        "At most so many executions",
    )
    .with_default(LISTED),
    Parameter::optional(
        "watch",
        ParameterKind::Flag,
        "Sample them every second for the next five seconds, instead of every ten seconds",
    )
    .with_default_flag(false),
];

/// `GET /api/v1/resources`: what all living executions of the caller use.
pub(super) async fn list(
    State(state): State<RestState>,
    RequestCaller(caller): RequestCaller,
    query_string: QueryString,
) -> RestResult<Json<ResourceListBody>> {
    let arguments = query_string.check(LIST)?;
    let limit = arguments.count("limit").unwrap_or_default();
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let filter = ListFilter {
        status: Some(ProcessStatus::Running),
        limit: Some(limit.saturating_add(1)),
        ..ListFilter::default()
    };
    let mut infos = state.engine.list(&caller, &filter);
    let more = infos.len() > limit;
    infos.truncate(limit);
    let mut executions = Vec::with_capacity(infos.len());
    for info in infos {
        let id = info.id.to_string();
        // One that ended or was removed meanwhile has no sample.
        if arguments.flag("watch") {
            state.engine.watch_usage(&caller, &id).unwrap_or_default();
        }
        let sample = state.engine.last_usage(&caller, &id).unwrap_or_default();
        executions.push(execution_usage_body(&info, sample));
    }
    Ok(Json(ResourceListBody { executions, more }))
}
