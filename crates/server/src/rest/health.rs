//! The daemon itself.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use ostler_model::Text;

use super::answer::Answer;
use super::caller::Asking;
use super::query::Asked;
use super::state::RestState;
use crate::wire::HealthBody;

/// `GET /api/v1/health`.
pub(super) async fn health(
    State(state): State<RestState>,
    Asking(caller): Asking,
    asked: Asked,
) -> Answer<Json<HealthBody>> {
    asked.check(&[])?;
    Ok(Json(HealthBody {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        pid: std::process::id(),
        started_at: state.started_at,
        running: state.engine.running(&caller),
        state_dir: Text::from(state.engine.settings().state_dir.as_path()),
    }))
}

/// `POST /api/v1/shutdown`: durable executions go on without the daemon.
pub(super) async fn shutdown(
    State(state): State<RestState>,
    _asking: Asking,
    asked: Asked,
) -> Answer<StatusCode> {
    asked.check(&[])?;
    state.shutdown.cancel();
    Ok(StatusCode::ACCEPTED)
}
