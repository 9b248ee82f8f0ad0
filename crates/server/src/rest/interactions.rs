//! Questions to people: consent to commands, and what commands ask.

use axum::Json;
use axum::extract::State;

use super::answer::Answer;
use super::caller::Asking;
use super::extract::{Body, QuestionId};
use super::query::{Asked, LIST_CURSOR, LIST_LIMIT, window};
use super::state::RestState;
use crate::params::Parameter;
use crate::window::question_position;
use crate::wire::{AnswerBody, InteractionBody, InteractionsBody};

const LIST: &[Parameter] = &[LIST_LIMIT, LIST_CURSOR];

/// `GET /api/v1/interactions`: those that are open, newest first.
pub(super) async fn list(
    State(state): State<RestState>,
    Asking(caller): Asking,
    asked: Asked,
) -> Answer<Json<InteractionsBody>> {
    let mut arguments = asked.check(LIST)?;
    let open = state.engine.interactions(&caller, true);
    let page = window(&open, question_position, &mut arguments)?;
    Ok(Json(InteractionsBody {
        interactions: page
            .entries
            .into_iter()
            .map(InteractionBody::from)
            .collect(),
        total: Some(open.len()),
        next: page.next,
    }))
}

/// `POST /api/v1/interactions/{id}/answer`.
pub(super) async fn answer(
    State(state): State<RestState>,
    Asking(caller): Asking,
    QuestionId(id): QuestionId,
    Body(body): Body<AnswerBody>,
) -> Answer<Json<InteractionBody>> {
    let answered = state.engine.answer(&caller, &id, body.value).await?;
    Ok(Json(InteractionBody::from(&answered)))
}
