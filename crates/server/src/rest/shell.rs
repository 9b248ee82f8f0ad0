//! Shell sessions: start one, run a command in one.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use ostler_api::{ExecutionBody, ShellRunBody, ShellRunResponse, ShellStartBody};
use ostler_engine::{ClientKind, IdempotencyKey, ShellCommand};
use ostler_model::TermSize;

use super::caller::RequestCaller;
use super::executions::retention_request;
use super::extract::{JsonBody, SessionPathId};
use super::response::RestResult;
use super::state::RestState;
use crate::convert::{execution_body, sandbox_options, shell_run_outcome};

/// The default timeout of a command, in milliseconds.
const DEFAULT_TIMEOUT_MS: u64 = 24 * 60 * 60 * 1_000;

/// `POST /api/v1/shells`.
pub(super) async fn start(
    State(state): State<RestState>,
    RequestCaller(caller): RequestCaller,
    JsonBody(body): JsonBody<ShellStartBody>,
) -> RestResult<(StatusCode, Json<ExecutionBody>)> {
    let size = TermSize {
        cols: body.cols,
        rows: body.rows,
    };
    let request = state
        .engine
        .shell_request(body.kind, body.cwd, size, body.base_env);
    let mut request = request.await?;
    request.id = body.id;
    request.set_env.extend(body.env);
    request.inherit_env = body.inherit_env;
    request.timeout = body.timeout_ms.map(Duration::from_millis);
    request.level = body.isolation;
    request.limits = body.limits;
    request.sandbox = sandbox_options(body.confine);
    request.secrets = body.secrets;
    request.approval = body.approval;
    request.labels = body.labels;
    request.description = body.description;
    request.retention = retention_request(body.retention);
    request.keep = body.keep;
    request.allowed = body.allowed;
    request.client_kind = if body.cli {
        ClientKind::Cli
    } else {
        ClientKind::Rest
    };
    let info = state.engine.start(&caller, request).await?;
    Ok((StatusCode::CREATED, Json(execution_body(&info))))
}

/// `POST /api/v1/executions/{id}/shell/run`.
pub(super) async fn run(
    State(state): State<RestState>,
    RequestCaller(caller): RequestCaller,
    SessionPathId(id): SessionPathId,
    JsonBody(body): JsonBody<ShellRunBody>,
) -> RestResult<Json<ShellRunResponse>> {
    let again = body.again;
    let command = ShellCommand {
        script: body.script,
        timeout: Duration::from_millis(body.at_most_ms.unwrap_or(DEFAULT_TIMEOUT_MS)),
        lease: None,
        idempotency: body.id.map(|id| IdempotencyKey {
            id,
            is_retry: again,
        }),
    };
    let run = state.engine.run_in_shell(&caller, &id, command);
    let run = state.unless_shutting_down(run).await??;
    Ok(Json(ShellRunResponse {
        end: shell_run_outcome(run.end),
        from: run.from,
        to: run.to,
        info: execution_body(&run.info),
    }))
}
