//! `GET /api/v1/tasks/{id}/events`: as server-sent events, or over a WebSocket.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::Body as HttpBody;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream::{self, Stream};
use ostler_api::TaskEventBody;
use ostler_interface::cursor_argument::{CURSOR_PARAMETER, check_cursor, parse_cursor};
use ostler_interface::http::HttpProblem;
use ostler_interface::params::Parameter;
use ostler_model::Cursor;
use tokio::time::timeout;

use super::caller::RequestCaller;
use super::event_stream::{self, HEARTBEAT_MS, LAST_EVENT_ID, RETRY_MS};
use super::extract::ExecutionPathId;
use super::query::{CURSOR, QueryString};
use super::response::RestResult;
use super::state::RestState;
use super::task_events::TaskEvents;
use super::ws::{UpgradeRequest, send_task_events};

/// The id of the last event: who names it has all of them.
const END_ID: &str = "end";

const EVENTS: &[Parameter] = &[CURSOR];

/// `GET /api/v1/tasks/{id}/events`: output, questions and the end of a task, as server-sent events
/// or over a WebSocket.
pub(super) async fn events(
    State(state): State<RestState>,
    RequestCaller(caller): RequestCaller,
    ExecutionPathId(id): ExecutionPathId,
    headers: HeaderMap,
    query_string: QueryString,
    upgrade: UpgradeRequest,
) -> RestResult<Response> {
    let mut arguments = query_string.check(EVENTS)?;
    let cursor = parse_cursor(&mut arguments)?;
    let open = |source, from| -> RestResult<TaskEvents> {
        check_cursor(&state.engine.info(&caller, &id)?, source, from)?;
        let from = from.unwrap_or(Cursor::START);
        TaskEvents::open(state.clone(), caller.clone(), &id, from)
    };
    if upgrade.is_requested() {
        return send_task_events(upgrade, open(CURSOR_PARAMETER, cursor)?);
    }
    let events = match last_event(&headers)? {
        // Tells the client not to connect again (HTML Standard, section 9.2.3).
        Some(LastEvent::End) => return Ok(StatusCode::NO_CONTENT.into_response()),
        Some(LastEvent::At(last)) => open("header 'Last-Event-ID'", Some(last))?,
        None => open(CURSOR_PARAMETER, cursor)?,
    };
    let body = HttpBody::from_stream(chunks(events));
    Ok((event_stream::HEADERS, body).into_response())
}

/// The event that a client has last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LastEvent {
    At(Cursor),
    End,
}

fn last_event(headers: &HeaderMap) -> RestResult<Option<LastEvent>> {
    let Some(given) = headers.get(LAST_EVENT_ID) else {
        return Ok(None);
    };
    let last = match given.to_str() {
        Ok(END_ID) => Some(LastEvent::End),
        Ok(text) => text.parse().ok().map(LastEvent::At),
        Err(_) => None,
    };
    last.map(Some).ok_or_else(|| {
        let given = String::from_utf8_lossy(given.as_bytes()).into_owned();
        HttpProblem::value(format!(
            "header 'Last-Event-ID' is '{given}'; allowed: the id of an event of this stream"
        ))
    })
}

/// The body.
fn chunks(events: TaskEvents) -> impl Stream<Item = Result<Bytes, Infallible>> {
    let retry = format!("retry: {RETRY_MS}\n\n");
    stream::unfold((events, Some(retry)), |(mut events, retry)| async move {
        let chunk = match retry {
            Some(retry) => retry,
            None => next_chunk(&mut events).await?,
        };
        Some((Ok(Bytes::from(chunk)), (events, None)))
    })
}

/// The next event, or a comment after a while without one.
async fn next_chunk(events: &mut TaskEvents) -> Option<String> {
    match timeout(Duration::from_millis(HEARTBEAT_MS), events.next()).await {
        Ok(event) => event.map(|event| format_event(&event)),
        Err(_) => Some(":\n\n".to_owned()),
    }
}

fn format_event(body: &TaskEventBody) -> String {
    let data = serde_json::to_string(body).unwrap_or_default();
    if body.event.is_last() {
        format!("id: {END_ID}\ndata: {data}\n\n")
    } else {
        format!("id: {}\ndata: {data}\n\n", body.cursor)
    }
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderName, HeaderValue};

    use super::*;

    #[test]
    fn the_last_event_is_a_position_or_the_end() {
        let last = |value: &'static [u8]| {
            let value = HeaderValue::from_bytes(value).expect("a header's value");
            last_event(&HeaderMap::from_iter([(
                HeaderName::from_static(LAST_EVENT_ID),
                value,
            )]))
        };
        let at = LastEvent::At(Cursor {
            offset: 12,
            event: 3,
        });
        assert_eq!(last(b"12.3"), Ok(Some(at)));
        assert_eq!(last(b"end"), Ok(Some(LastEvent::End)));
        assert_eq!(last_event(&HeaderMap::new()), Ok(None));
        for wrong in [
            &b""[..],
            b"END",
            b"-1",
            b"1.x",
            b"\xff",
            b"99999999999999999999",
        ] {
            assert!(last(wrong).is_err(), "{wrong:?}");
        }
    }
}
