//! The feed of events of every execution the client sees.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use ostler_api::EventsBody;
use ostler_engine::EventFeedQuery;
use ostler_journal::LedgerCursor;

use super::caller::RequestCaller;
use super::event_stream;
use super::query::{QueryString, SINCE};
use super::response::RestResult;
use super::state::RestState;
use ostler_interface::convert::{damaged_entries, event_body};
use ostler_interface::params::{Parameter, ParameterKind};
use ostler_interface::past_time::past_time;

/// The longest time that one request waits for events, in milliseconds.
const WAIT_LIMIT_MS: i64 = 60_000;

const EVENTS: &[Parameter] = &[
    Parameter::optional(
        "cursor",
        ParameterKind::Integer(0, i64::MAX),
        "Where to go on; absent: now, or the beginning with since or id",
    ),
    SINCE,
    Parameter::optional("id", ParameterKind::Text, "Only those of this execution"),
    Parameter::optional(
        "wait_ms",
        ParameterKind::Integer(0, WAIT_LIMIT_MS),
        "How long to wait where there are none yet",
    )
    .with_default(0),
];

/// `GET /api/v1/events`: events of executions from a position on, oldest first. Positions remain
/// valid under the next daemon. A page of JSON, or for those who accept `text/event-stream` all of
/// them as they happen.
pub(super) async fn events(
    State(state): State<RestState>,
    RequestCaller(caller): RequestCaller,
    headers: HeaderMap,
    query_string: QueryString,
) -> RestResult<Response> {
    let mut arguments = query_string.check(EVENTS)?;
    let since = match arguments.text("since") {
        Some(given) => Some(past_time("since", &given)?),
        None => None,
    };
    let execution = match arguments.text("id") {
        Some(id) => Some(state.engine.info(&caller, &id)?.id),
        None => None,
    };
    let query = EventFeedQuery {
        start: arguments.count("cursor").map(LedgerCursor),
        since,
        execution,
    };
    let wait = Duration::from_millis(arguments.count("wait_ms").unwrap_or_default());
    if event_stream::is_requested(&headers) {
        let query = EventFeedQuery {
            start: event_stream::last_event(&headers)?.or(query.start),
            ..query
        };
        return event_stream::respond(state, caller, query).await;
    }
    let next_records = state.engine.poll_events(&caller, query, wait);
    let feed = state.unless_shutting_down(next_records).await??;
    let page = EventsBody {
        events: feed.records.into_iter().map(event_body).collect(),
        damaged: feed.damaged.into_iter().map(damaged_entries).collect(),
        next: feed.next.0,
        behind: feed.has_more,
    };
    Ok(Json(page).into_response())
}
