//! Contexts: created or found warm, listed, removed. Starts name theirs in their own bodies.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use ostler_api::{ContextBody, ContextRequestBody, ContextsBody};
use ostler_interface::convert::{context_body, context_request};
use ostler_interface::params::{Parameter, ParameterKind};

use super::caller::RequestCaller;
use super::extract::{ContextPathId, JsonBody, NoBody};
use super::query::QueryString;
use super::response::RestResult;
use super::state::RestState;

const REMOVE: &[Parameter] = &[Parameter::optional(
    "force",
    ParameterKind::Flag,
    "Stop the executions that use it first; without it, one in use is refused",
)
.with_default_flag(false)];

/// `POST /api/v1/contexts`: the warm context of a project, or a new one. 201 for a new one, 200 for
/// the warm one that there is.
pub(super) async fn open(
    State(state): State<RestState>,
    RequestCaller(caller): RequestCaller,
    JsonBody(body): JsonBody<ContextRequestBody>,
) -> RestResult<(StatusCode, Json<ContextBody>)> {
    let request = context_request(body);
    let (context, is_new) = state.engine.open_context(&caller, request).await?;
    let status = if is_new {
        StatusCode::CREATED
    } else {
        StatusCode::OK
    };
    Ok((status, Json(context_body(&context))))
}

/// `GET /api/v1/contexts`: the contexts that the caller sees.
pub(super) async fn list(
    State(state): State<RestState>,
    RequestCaller(caller): RequestCaller,
    query_string: QueryString,
) -> RestResult<Json<ContextsBody>> {
    query_string.check(&[])?;
    let contexts = state.engine.contexts(&caller);
    let contexts = contexts.iter().map(context_body).collect();
    Ok(Json(ContextsBody { contexts }))
}

/// `GET /api/v1/contexts/{id}`: one context.
pub(super) async fn show(
    State(state): State<RestState>,
    RequestCaller(caller): RequestCaller,
    ContextPathId(id): ContextPathId,
    query_string: QueryString,
) -> RestResult<Json<ContextBody>> {
    query_string.check(&[])?;
    let context = state.engine.context(&caller, &id)?;
    Ok(Json(context_body(&context)))
}

/// `DELETE /api/v1/contexts/{id}`: removes a context; answers when its files are gone.
pub(super) async fn remove(
    State(state): State<RestState>,
    RequestCaller(caller): RequestCaller,
    ContextPathId(id): ContextPathId,
    query_string: QueryString,
    _: NoBody,
) -> RestResult<StatusCode> {
    let force = query_string.check(REMOVE)?.flag("force");
    let removal = state.engine.remove_context(&caller, &id, force);
    state.unless_shutting_down(removal).await??;
    Ok(StatusCode::NO_CONTENT)
}
