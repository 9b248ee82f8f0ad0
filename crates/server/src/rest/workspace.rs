//! What a command wrote to its overlay.

use axum::Json;
use axum::extract::State;
use ostler_model::{Caller, WorkspaceOrder};

use super::answer::Answer;
use super::caller::Asking;
use super::extract::Execution;
use super::query::Asked;
use super::state::RestState;
use crate::params::{Kind, Parameter};
use crate::wire::WorkspaceBody;

/// The most changes one answer lists.
const CHANGES_LIMIT: i64 = 100_000;
/// Changes of an answer nobody named a size for, and conflicts.
const CHANGES: i64 = 1_000;
/// The longest diff of one answer, in bytes.
const DIFF_LIMIT_BYTES: i64 = 8 * 1024 * 1024;
/// Bytes of a diff nobody named a size for.
const DIFF_BYTES: i64 = 1024 * 1024;

const LISTED: &[Parameter] = &[Parameter::optional(
    "limit",
    Kind::Integer(0, CHANGES_LIMIT),
    "At most so many changes",
)
.or(CHANGES)];

const COMMITTED: &[Parameter] = &[
    LISTED[0],
    Parameter::optional(
        "allow_autorun",
        Kind::Flag,
        "Also what tools run or obey unasked",
    ),
];

const SHOWN: &[Parameter] = &[
    Parameter::optional("path", Kind::List, "Only these and what is below them"),
    Parameter::optional(
        "limit_bytes",
        Kind::Integer(1, DIFF_LIMIT_BYTES),
        "At most so many bytes",
    )
    .or(DIFF_BYTES),
];

/// `GET /api/v1/executions/{id}/workspace`: its changes.
pub(super) async fn changes(
    State(state): State<RestState>,
    Asking(caller): Asking,
    Execution(id): Execution,
    asked: Asked,
) -> Answer<Json<WorkspaceBody>> {
    let arguments = asked.check(LISTED)?;
    let limit = size(arguments.count("limit"));
    let order = WorkspaceOrder::Changes { limit };
    carry_out(&state, &caller, (&id, order), limit).await
}

/// `GET /api/v1/executions/{id}/workspace/diff`.
pub(super) async fn diff(
    State(state): State<RestState>,
    Asking(caller): Asking,
    Execution(id): Execution,
    asked: Asked,
) -> Answer<Json<WorkspaceBody>> {
    let mut arguments = asked.check(SHOWN)?;
    let paths = arguments.list("path");
    let order = WorkspaceOrder::Diff {
        paths: paths.into_iter().map(Into::into).collect(),
        limit_bytes: size(arguments.count("limit_bytes")),
    };
    carry_out(&state, &caller, (&id, order), 0).await
}

/// `POST /api/v1/executions/{id}/workspace/commit`: what is on the host now, or the conflicts
/// or the files that tools run unasked, because of which nothing is.
pub(super) async fn commit(
    State(state): State<RestState>,
    Asking(caller): Asking,
    Execution(id): Execution,
    asked: Asked,
) -> Answer<Json<WorkspaceBody>> {
    let arguments = asked.check(COMMITTED)?;
    let limit = size(arguments.count("limit"));
    let order = WorkspaceOrder::Commit {
        allow_autorun: arguments.flag("allow_autorun"),
    };
    carry_out(&state, &caller, (&id, order), limit).await
}

/// `POST /api/v1/executions/{id}/workspace/discard`.
pub(super) async fn discard(
    State(state): State<RestState>,
    Asking(caller): Asking,
    Execution(id): Execution,
    asked: Asked,
) -> Answer<Json<WorkspaceBody>> {
    asked.check(&[])?;
    carry_out(&state, &caller, (&id, WorkspaceOrder::Discard), 0).await
}

async fn carry_out(
    state: &RestState,
    caller: &Caller,
    (id, order): (&str, WorkspaceOrder),
    limit: usize,
) -> Answer<Json<WorkspaceBody>> {
    let answer = state.engine.workspace(caller, id, order).await?;
    Ok(Json(WorkspaceBody::new(answer, limit)))
}

fn size(given: Option<u64>) -> usize {
    let given = given.unwrap_or_default();
    usize::try_from(given).unwrap_or(usize::MAX)
}
