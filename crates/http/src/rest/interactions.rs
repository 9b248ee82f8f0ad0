//! Questions to people: approval of commands, and prompts of commands.

use axum::Json;
use axum::extract::State;
use ostler_api::{AnswerBody, InteractionBody, InteractionsBody};

use super::caller::RequestCaller;
use super::extract::{InteractionPathId, JsonBody};
use super::query::{LIST_CURSOR, LIST_LIMIT, QueryString, list_page};
use super::response::RestResult;
use super::state::RestState;
use ostler_interface::convert::interaction_body;
use ostler_interface::pagination::question_position;
use ostler_interface::params::Parameter;

const LIST: &[Parameter] = &[LIST_LIMIT, LIST_CURSOR];

/// `GET /api/v1/interactions`: the open ones, newest first.
pub(super) async fn list(
    State(state): State<RestState>,
    RequestCaller(caller): RequestCaller,
    query_string: QueryString,
) -> RestResult<Json<InteractionsBody>> {
    let mut arguments = query_string.check(LIST)?;
    let open = state.engine.interactions(&caller, true);
    let page = list_page(&open, question_position, &mut arguments)?;
    Ok(Json(InteractionsBody {
        interactions: page.entries.into_iter().map(interaction_body).collect(),
        total: Some(open.len()),
        next: page.next,
    }))
}

/// `POST /api/v1/interactions/{id}/answer`.
pub(super) async fn answer(
    State(state): State<RestState>,
    RequestCaller(caller): RequestCaller,
    InteractionPathId(id): InteractionPathId,
    JsonBody(body): JsonBody<AnswerBody>,
) -> RestResult<Json<InteractionBody>> {
    let answered = state
        .engine
        .answer_interaction(&caller, &id, body.value)
        .await?;
    Ok(Json(interaction_body(&answered)))
}
