//! The overlay of a command: its changes, diff, commit and discard.

use axum::Json;
use axum::extract::State;
use ostler_api::WorkspaceBody;
use ostler_model::{ByteString, Caller, OverlayRequest};
use ostler_render::truncated;

use super::caller::RequestCaller;
use super::extract::{ExecutionPathId, NoBody};
use super::query::QueryString;
use super::response::RestResult;
use super::state::RestState;
use ostler_interface::http::HttpProblem;
use ostler_interface::params::{Parameter, ParameterKind};

/// The most changes in one response.
const CHANGES_LIMIT: i64 = 100_000;
/// Changes and conflicts in a response by default.
const CHANGES: i64 = 1_000;
/// The longest diff in one response, in bytes.
const DIFF_LIMIT_BYTES: i64 = 8 * 1024 * 1024;
/// Bytes of a diff by default.
const DIFF_BYTES: i64 = 1024 * 1024;

/// The parameter for paths that are not UTF-8.
const PATH_BASE64: &str = "path_base64";
/// The most characters of a value that an error quotes.
const QUOTE_CHARS: usize = 80;

const CHANGES_PARAMS: &[Parameter] = &[Parameter::optional(
    "limit",
    ParameterKind::Integer(0, CHANGES_LIMIT),
    "At most so many changes",
)
.with_default(CHANGES)];

const COMMIT_PARAMS: &[Parameter] = &[
    CHANGES_PARAMS[0],
    Parameter::optional(
        "allow_autorun",
        ParameterKind::Flag,
        "Also what tools run or obey unasked",
    ),
];

const DIFF_PARAMS: &[Parameter] = &[
    Parameter::optional(
        "path",
        ParameterKind::List,
        "Only these and what is below them",
    ),
    Parameter::optional(
        PATH_BASE64,
        ParameterKind::List,
        "The same for paths that are not UTF-8: the value of 'base64' of a path in the changes",
    ),
    Parameter::optional(
        "limit_bytes",
        ParameterKind::Integer(1, DIFF_LIMIT_BYTES),
        "At most so many bytes",
    )
    .with_default(DIFF_BYTES),
];

/// `GET /api/v1/executions/{id}/workspace`: the changes in the overlay of an execution.
pub(super) async fn changes(
    State(state): State<RestState>,
    RequestCaller(caller): RequestCaller,
    ExecutionPathId(id): ExecutionPathId,
    query_string: QueryString,
) -> RestResult<Json<WorkspaceBody>> {
    let arguments = query_string.check(CHANGES_PARAMS)?;
    let limit = to_usize(arguments.count("limit"));
    let request = OverlayRequest::Changes { limit };
    execute(&state, &caller, &id, request, limit).await
}

/// `GET /api/v1/executions/{id}/workspace/diff`: the changes as text.
pub(super) async fn diff(
    State(state): State<RestState>,
    RequestCaller(caller): RequestCaller,
    ExecutionPathId(id): ExecutionPathId,
    query_string: QueryString,
) -> RestResult<Json<WorkspaceBody>> {
    let mut arguments = query_string.check(DIFF_PARAMS)?;
    let mut paths: Vec<ByteString> = Vec::new();
    paths.extend(arguments.list("path").into_iter().map(Into::into));
    for text in arguments.list(PATH_BASE64) {
        paths.push(decode_path(&text)?);
    }
    let request = OverlayRequest::Diff {
        paths,
        limit_bytes: to_usize(arguments.count("limit_bytes")),
    };
    let limit = to_usize(Some(CHANGES.unsigned_abs()));
    execute(&state, &caller, &id, request, limit).await
}

/// `POST /api/v1/executions/{id}/workspace/commit`: commits changes of the overlay. The answer has
/// the committed changes; or the conflicts, or the files that tools run automatically, because of
/// which nothing was committed.
pub(super) async fn commit(
    State(state): State<RestState>,
    RequestCaller(caller): RequestCaller,
    ExecutionPathId(id): ExecutionPathId,
    query_string: QueryString,
    _: NoBody,
) -> RestResult<Json<WorkspaceBody>> {
    let arguments = query_string.check(COMMIT_PARAMS)?;
    let limit = to_usize(arguments.count("limit"));
    let request = OverlayRequest::Commit {
        allow_autorun: arguments.flag("allow_autorun"),
    };
    execute(&state, &caller, &id, request, limit).await
}

/// `POST /api/v1/executions/{id}/workspace/discard`: discards the changes of the overlay. The answer
/// has those that stay on the host, where it ends a commit that was interrupted.
pub(super) async fn discard(
    State(state): State<RestState>,
    RequestCaller(caller): RequestCaller,
    ExecutionPathId(id): ExecutionPathId,
    query_string: QueryString,
    _: NoBody,
) -> RestResult<Json<WorkspaceBody>> {
    query_string.check(&[])?;
    let limit = to_usize(Some(CHANGES.unsigned_abs()));
    execute(&state, &caller, &id, OverlayRequest::Discard, limit).await
}

async fn execute(
    state: &RestState,
    caller: &Caller,
    id: &str,
    request: OverlayRequest,
    limit: usize,
) -> RestResult<Json<WorkspaceBody>> {
    let response = state.engine.handle_overlay(caller, id, request).await?;
    Ok(Json(WorkspaceBody::new(response, limit)))
}

/// The path in a value of [`PATH_BASE64`].
fn decode_path(text: &str) -> RestResult<ByteString> {
    ByteString::from_base64(text).ok_or_else(|| {
        let given = truncated(text, QUOTE_CHARS);
        HttpProblem::value(format!(
            "parameter '{PATH_BASE64}' is '{given}'; allowed: base64 with padding, in which a URL has \
             %2B for +"
        ))
    })
}

fn to_usize(given: Option<u64>) -> usize {
    let given = given.unwrap_or_default();
    usize::try_from(given).unwrap_or(usize::MAX)
}
