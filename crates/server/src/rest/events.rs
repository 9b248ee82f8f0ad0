//! What happens, of everything that a client sees.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use jiff::tz::TimeZone;
use ostler_engine::FeedQuery;
use ostler_journal::LedgerCursor;
use ostler_model::Timestamp;

use super::answer::Answer;
use super::caller::Asking;
use super::query::{Asked, SINCE};
use super::state::RestState;
use crate::error::Failure;
use crate::params::{Kind, Parameter};
use crate::render::{Moment, moment};
use crate::wire::{EventBody, EventsBody, Problem};

/// The longest time that one request waits for events, in milliseconds.
const WAIT_LIMIT_MS: i64 = 60_000;

const EVENTS: &[Parameter] = &[
    Parameter::optional(
        "cursor",
        Kind::Integer(0, i64::MAX),
        "Where to go on; absent: now, or the beginning with since or id",
    ),
    SINCE,
    Parameter::optional("id", Kind::Text, "Only those of this execution"),
    Parameter::optional(
        "wait_ms",
        Kind::Integer(0, WAIT_LIMIT_MS),
        "How long to wait where there are none yet",
    )
    .or(0),
];

/// `GET /api/v1/events`: what happened to executions from a position on, oldest first; the
/// positions hold under the next daemon, too.
pub(super) async fn events(
    State(state): State<RestState>,
    Asking(caller): Asking,
    asked: Asked,
) -> Answer<Json<EventsBody>> {
    let mut arguments = asked.check(EVENTS)?;
    let since = match arguments.text("since") {
        Some(given) => Some(then(&given)?),
        None => None,
    };
    let execution = match arguments.text("id") {
        Some(id) => Some(state.engine.info(&caller, &id)?.id),
        None => None,
    };
    let query = FeedQuery {
        from: arguments.count("cursor").map(LedgerCursor),
        since,
        execution,
    };
    let wait = Duration::from_millis(arguments.count("wait_ms").unwrap_or_default());
    let looked = state.engine.feed(&caller, query, wait);
    let feed = state.unless_leaving(looked).await??;
    Ok(Json(EventsBody {
        events: feed.records.into_iter().map(EventBody::from).collect(),
        next: feed.next.0,
        behind: feed.behind,
    }))
}

fn then(given: &str) -> Answer<Timestamp> {
    let zone = TimeZone::system();
    let read = moment("since", given, Timestamp::now(), &zone);
    match read.map_err(|error| Problem::from(Failure::from(error)))? {
        Moment::At(at) => Ok(at),
        Moment::Position(_) => Err(Problem::value(format!(
            "parameter 'since' is '{given}'; allowed: a time, or how long ago as in 10m"
        ))),
    }
}
