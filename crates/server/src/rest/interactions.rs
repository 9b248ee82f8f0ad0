//! Questions to people: consent to commands, and what commands ask.

use axum::Json;
use axum::extract::State;

use super::answer::Answer;
use super::caller::Asking;
use super::extract::{Body, Id};
use super::state::RestState;
use crate::wire::{AnswerBody, InteractionBody, InteractionsBody};

/// `GET /api/v1/interactions`: those that are open.
pub(super) async fn list(
    State(state): State<RestState>,
    Asking(caller): Asking,
) -> Answer<Json<InteractionsBody>> {
    let open = state.engine.interactions(&caller, true);
    Ok(Json(InteractionsBody {
        interactions: open.iter().map(InteractionBody::from).collect(),
    }))
}

/// `POST /api/v1/interactions/{id}/answer`.
pub(super) async fn answer(
    State(state): State<RestState>,
    Asking(caller): Asking,
    Id(id): Id,
    Body(body): Body<AnswerBody>,
) -> Answer<Json<InteractionBody>> {
    let answered = state.engine.answer(&caller, &id, body.value).await?;
    Ok(Json(InteractionBody::from(&answered)))
}
