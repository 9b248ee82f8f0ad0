//! Tasks: the routes of the container engine's API. They are executions, and so is their id.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use ostler_api::{InputResponse, TaskCancelBody, TaskInputBody};
use ostler_engine::ExecutionInfo;
use ostler_interface::convert::execution_body;
use ostler_model::spec::Io;

use super::caller::RequestCaller;
use super::extract::{ExecutionPathId, JsonBody, NoBody};
use super::query::QueryString;
use super::response::RestResult;
use super::state::RestState;

/// How long a task may take to end after SIGINT before it is stopped.
const INTERRUPT_WAIT: Duration = Duration::from_secs(5);

/// `POST /api/v1/tasks/{id}/input`: writes one line to the input of a task.
pub(super) async fn input(
    State(state): State<RestState>,
    RequestCaller(caller): RequestCaller,
    ExecutionPathId(id): ExecutionPathId,
    JsonBody(body): JsonBody<TaskInputBody>,
) -> RestResult<Json<InputResponse>> {
    let info = state.engine.info(&caller, &id)?;
    // The key of a terminal that ends a line is carriage return.
    let end = if matches!(info.spec.io, Io::Pty { .. }) {
        b'\r'
    } else {
        b'\n'
    };
    let mut line = body.input.into_bytes();
    line.push(end);
    let taken = state.engine.write(&caller, &id, line).await?;
    Ok(Json(InputResponse { taken }))
}

/// `POST /api/v1/tasks/{id}/cancel`: ends a task: SIGINT, and the kill ladder where that does not
/// end it.
pub(super) async fn cancel(
    State(state): State<RestState>,
    RequestCaller(caller): RequestCaller,
    ExecutionPathId(id): ExecutionPathId,
    query_string: QueryString,
    _: NoBody,
) -> RestResult<Json<TaskCancelBody>> {
    query_string.check(&[])?;
    let before = state.engine.info(&caller, &id)?;
    if before.state.is_finished() {
        return Ok(Json(cancel_body(&before, false)));
    }
    let reason = "cancelled".to_owned();
    let ended = state.engine.interrupt(&caller, &id, INTERRUPT_WAIT, reason);
    let info = state.unless_shutting_down(ended).await??;
    Ok(Json(cancel_body(&info, info.state.is_finished())))
}

fn cancel_body(info: &ExecutionInfo, cancelled: bool) -> TaskCancelBody {
    let body = execution_body(info);
    TaskCancelBody {
        task_id: info.id.to_string(),
        cancelled,
        status: body.status.as_str().to_owned(),
        exit_code: body.exit_code,
        survivors: body.survivors,
    }
}
