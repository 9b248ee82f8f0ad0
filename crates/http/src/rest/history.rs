//! The history of executions.

use axum::Json;
use axum::extract::State;
use ostler_api::{HistoryDetailBody, HistoryFreshnessBody, HistoryPageBody};
use ostler_interface::convert::{history_entry_body, history_freshness_body, run_statistics_body};
use ostler_interface::history::{History, arguments, no_history};
use ostler_interface::params::{Arguments, Parameter, ParameterKind};
use ostler_interface::project_history;
use ostler_model::Caller;
use ostler_store::HistoryQuery;

use super::caller::{RequestCaller, require_daemon_user};
use super::extract::{NoBody, PathId};
use super::query::QueryString;
use super::response::RestResult;
use super::state::RestState;

/// The most executions of one page.
const ROWS_LIMIT: i64 = 500;
/// Executions of a page by default.
const ROWS: i64 = 50;
/// The largest offset; pages beyond it are reached by position.
const OFFSET_LIMIT: i64 = 10_000;

const LIMIT: Parameter = Parameter::optional(
    "limit",
    ParameterKind::Integer(1, ROWS_LIMIT),
    "At most so many",
)
.with_default(ROWS);
const OFFSET: Parameter = Parameter::optional(
    "offset",
    ParameterKind::Integer(0, OFFSET_LIMIT),
    "Pass over so many first; before reaches further",
)
.with_default(0);
const BEFORE: Parameter = Parameter::optional(
    "before",
    ParameterKind::Integer(0, i64::MAX),
    "The next of the page before",
);

const LIST: &[Parameter] = &[
    LIMIT,
    OFFSET,
    BEFORE,
    arguments::STATUS,
    arguments::SINCE,
    arguments::UNTIL,
    arguments::PROJECT,
    arguments::SESSION,
    arguments::LABEL,
    arguments::TEXT,
];
const OF_PROJECT: &[Parameter] = &[
    LIMIT,
    OFFSET,
    BEFORE,
    arguments::STATUS,
    arguments::SINCE,
    arguments::UNTIL,
    arguments::LABEL,
    arguments::TEXT,
];

/// `GET /api/v1/history`: executions, newest first; also those whose files are gone.
pub(super) async fn list(
    State(state): State<RestState>,
    RequestCaller(caller): RequestCaller,
    query_string: QueryString,
) -> RestResult<Json<HistoryPageBody>> {
    let mut arguments = query_string.check(LIST)?;
    let query = HistoryQuery {
        project: arguments.text("project"),
        session: arguments.text("session"),
        ..page_query(arguments, &caller)?
    };
    page(&state, query).await
}

/// `GET /api/v1/projects/{id}/executions`: executions of one project, newest first; also those
/// whose files are gone.
pub(super) async fn project(
    State(state): State<RestState>,
    RequestCaller(caller): RequestCaller,
    PathId(project): PathId,
    query_string: QueryString,
) -> RestResult<Json<HistoryPageBody>> {
    let query = HistoryQuery {
        project: Some(project),
        ..page_query(query_string.check(OF_PROJECT)?, &caller)?
    };
    page(&state, query).await
}

/// `GET /api/v1/history/{id}`: one execution, and how its command usually ends.
pub(super) async fn show(
    State(state): State<RestState>,
    RequestCaller(caller): RequestCaller,
    PathId(id): PathId,
    query_string: QueryString,
) -> RestResult<Json<HistoryDetailBody>> {
    // A foreign id is unknown, whatever else is wrong with the request.
    let finding = project_history::find(history(&state)?, &caller, &id);
    let answer = state.unless_shutting_down(finding).await??;
    query_string.check(&[])?;
    let (row, usual) = answer.value;
    Ok(Json(HistoryDetailBody {
        execution: history_entry_body(row),
        usual: usual.as_ref().map(run_statistics_body),
        freshness: history_freshness_body(answer.freshness),
    }))
}

/// `POST /api/v1/history/rebuild`: makes the history anew from the ledger. For the daemon's user.
pub(super) async fn rebuild(
    State(state): State<RestState>,
    RequestCaller(caller): RequestCaller,
    query_string: QueryString,
    _: NoBody,
) -> RestResult<Json<HistoryFreshnessBody>> {
    query_string.check(&[])?;
    require_daemon_user(&caller, "history", "made anew")?;
    let rebuilding = history(&state)?.rebuild();
    let freshness = state.unless_shutting_down(rebuilding).await??;
    Ok(Json(history_freshness_body(freshness)))
}

fn history(state: &RestState) -> RestResult<&History> {
    let history = state.history.as_ref();
    history.ok_or_else(|| no_history().into())
}

fn page_query(mut arguments: Arguments, caller: &Caller) -> RestResult<HistoryQuery> {
    let query = arguments::history_query(&mut arguments, caller)?;
    Ok(HistoryQuery {
        limit: arguments.count("limit").unwrap_or_default(),
        skip: arguments.count("offset").unwrap_or_default(),
        before: arguments.count("before"),
        ..query
    })
}

async fn page(state: &RestState, query: HistoryQuery) -> RestResult<Json<HistoryPageBody>> {
    let listing = project_history::list(history(state)?, query);
    let answer = state.unless_shutting_down(listing).await??;
    let page = answer.value;
    Ok(Json(HistoryPageBody {
        executions: page.rows.into_iter().map(history_entry_body).collect(),
        next: page.next_before,
        freshness: history_freshness_body(answer.freshness),
    }))
}
