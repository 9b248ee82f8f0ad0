//! The daemon's health, and its shutdown.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use ostler_api::{HealthBody, VersionBody};
use ostler_model::ByteString;

use super::caller::RequestCaller;
use super::extract::NoBody;
use super::query::QueryString;
use super::response::RestResult;
use super::state::RestState;

/// `GET /api/v1/health`: the state of the daemon.
pub(super) async fn health(
    State(state): State<RestState>,
    RequestCaller(caller): RequestCaller,
    query_string: QueryString,
) -> RestResult<Json<HealthBody>> {
    query_string.check(&[])?;
    Ok(Json(HealthBody {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        pid: std::process::id(),
        started_at: state.started_at,
        running: state.engine.running_count(&caller),
        state_dir: ByteString::from(state.engine.settings().state_dir.as_path()),
        http_problem: state.http_problem.clone(),
    }))
}

/// `GET /api/v1/version`: the version of the daemon.
pub(super) async fn version(
    _caller: RequestCaller,
    query_string: QueryString,
) -> RestResult<Json<VersionBody>> {
    query_string.check(&[])?;
    Ok(Json(VersionBody {
        version: env!("CARGO_PKG_VERSION").to_owned(),
    }))
}

/// `POST /api/v1/shutdown`: shuts the daemon down; durable executions continue without it.
pub(super) async fn shutdown(
    State(state): State<RestState>,
    _caller: RequestCaller,
    query_string: QueryString,
    _: NoBody,
) -> RestResult<StatusCode> {
    query_string.check(&[])?;
    state.shutdown.cancel();
    Ok(StatusCode::ACCEPTED)
}
