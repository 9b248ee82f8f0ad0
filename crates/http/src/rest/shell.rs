//! Shell sessions: start one, run a command in one.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use ostler_api::{ExecutionBody, ShellRunBody, ShellRunResponse, ShellStartBody};
use ostler_engine::{ClientKind, IdempotencyKey, ShellCommand};
use ostler_model::{StartOptions, TermSize};

use super::caller::RequestCaller;
use super::extract::{JsonBody, SessionPathId};
use super::response::RestResult;
use super::state::RestState;
use ostler_interface::convert::{execution_body, shell_run_outcome};

/// The default timeout of a command, in milliseconds.
const DEFAULT_TIMEOUT_MS: u64 = 24 * 60 * 60 * 1_000;

/// `POST /api/v1/shells`: starts an integrated shell in a terminal.
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
    let (session, requested) = (request.options, body.options);
    request.options = StartOptions {
        set_env: [session.set_env, requested.set_env].concat(),
        pty: session.pty,
        ..requested
    };
    request.client_kind = if body.cli {
        ClientKind::Cli
    } else {
        ClientKind::Rest
    };
    let info = state.engine.start(&caller, request).await?;
    Ok((StatusCode::CREATED, Json(execution_body(&info))))
}

/// `POST /api/v1/executions/{id}/shell/run`: types a command into a shell and waits for its end.
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
