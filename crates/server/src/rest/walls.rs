//! What an execution uses, and what of the network it tried to reach.

use axum::Json;
use axum::extract::State;
use ostler_model::{ErrorCode, Observation};

use super::answer::Answer;
use super::caller::Asking;
use super::extract::Execution;
use super::query::Asked;
use super::state::RestState;
use crate::params::{Kind, Parameter};
use crate::reading::network;
use crate::wire::{NetworkPageBody, Problem, ResourcesBody};

/// The most decisions one page holds.
const DECISIONS_LIMIT: i64 = 1_000;
/// Decisions of a page nobody named a size for.
const DECISIONS: i64 = 100;

const PAGE: &[Parameter] = &[
    Parameter::optional(
        "from",
        Kind::Integer(0, i64::MAX),
        "The `next` of the page before",
    )
    .or(0),
    Parameter::optional(
        "limit",
        Kind::Integer(1, DECISIONS_LIMIT),
        "At most so many decisions",
    )
    .or(DECISIONS),
];

/// `GET /api/v1/executions/{id}/network`: the decisions of its allow list, oldest first; none
/// where it has no allow list.
pub(super) async fn network(
    State(state): State<RestState>,
    Asking(caller): Asking,
    Execution(id): Execution,
    asked: Asked,
) -> Answer<Json<NetworkPageBody>> {
    let arguments = asked.check(PAGE)?;
    let from = arguments.count("from").unwrap_or_default();
    let limit = arguments.count("limit").unwrap_or_default();
    let directory = state.engine.directory(&caller, &id)?;
    let page = network::page(
        &directory,
        from,
        usize::try_from(limit).unwrap_or(usize::MAX),
    );
    let unread = |error| {
        let message = format!("the log of the network cannot be read: {error}");
        Problem::new(ErrorCode::OutputRetrieval, message, None)
    };
    Ok(Json(page.map_err(unread)?))
}

/// `GET /api/v1/executions/{id}/resources`.
pub(super) async fn resources(
    State(state): State<RestState>,
    Asking(caller): Asking,
    Execution(id): Execution,
    asked: Asked,
) -> Answer<Json<ResourcesBody>> {
    asked.check(&[])?;
    let info = state.engine.info(&caller, &id)?;
    let what = Observation {
        disk: info.spec.policy.limits.disk_bytes.is_some(),
        ..Observation::default()
    };
    let evidence = state.engine.observe(&caller, &id, what).await?;
    Ok(Json(ResourcesBody::new(evidence, &info)))
}
