//! Shell sessions: start one, run a command in one.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use ostler_engine::{Face, Once, ShellCommand};
use ostler_model::TermSize;

use super::answer::Answer;
use super::caller::Asking;
use super::executions::retention;
use super::extract::{Body, Session};
use super::state::RestState;
use crate::wire::{InfoBody, ShellEndBody, ShellRanBody, ShellRunBody, ShellStartBody};

/// How long a command is waited for, where nobody says, in milliseconds.
const AT_MOST_MS: u64 = 24 * 60 * 60 * 1_000;

/// `POST /api/v1/shells`.
pub(super) async fn start(
    State(state): State<RestState>,
    Asking(caller): Asking,
    Body(body): Body<ShellStartBody>,
) -> Answer<(StatusCode, Json<InfoBody>)> {
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
    request.confine = body.confine.into_request();
    request.secrets = body.secrets;
    request.approval = body.approval;
    request.labels = body.labels;
    request.description = body.description;
    request.retention = retention(body.retention);
    request.keep = body.keep;
    request.allowed = body.allowed;
    request.face = if body.cli { Face::Cli } else { Face::Rest };
    let info = state.engine.start(&caller, request).await?;
    Ok((StatusCode::CREATED, Json(InfoBody::from(&info))))
}

/// `POST /api/v1/executions/{id}/shell/run`.
pub(super) async fn run(
    State(state): State<RestState>,
    Asking(caller): Asking,
    Session(id): Session,
    Body(body): Body<ShellRunBody>,
) -> Answer<Json<ShellRanBody>> {
    let again = body.again;
    let command = ShellCommand {
        script: body.script,
        at_most: Duration::from_millis(body.at_most_ms.unwrap_or(AT_MOST_MS)),
        lease: None,
        once: body.id.map(|id| Once { id, again }),
    };
    let run = state.engine.run_in_shell(&caller, &id, command);
    let run = state.unless_leaving(run).await??;
    Ok(Json(ShellRanBody {
        end: ShellEndBody::from(run.end),
        from: run.from,
        to: run.to,
        info: InfoBody::from(&run.info),
    }))
}
