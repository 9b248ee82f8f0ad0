//! The feed of events as server-sent events (HTML Standard, section 9.2): each has its position as
//! `id`, so that a client that connects again, also to the next daemon, names the last one it has
//! in `Last-Event-ID` and misses none.

use std::convert::Infallible;
use std::time::Duration;

use axum::Extension;
use axum::body::Body as HttpBody;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream::{self, Stream};
use ostler_engine::{EventFeedPage, EventFeedQuery};
use ostler_interface::convert::{damaged_entries, event_body};
use ostler_interface::http::HttpProblem;
use ostler_journal::LedgerCursor;
use ostler_model::Caller;

use super::in_flight::CountedBody;
use super::response::RestResult;
use super::state::RestState;

/// The media type of server-sent events.
pub(crate) const EVENT_STREAM: &str = "text/event-stream";
pub(super) const LAST_EVENT_ID: &str = "last-event-id";
/// How long a client should wait before it connects again, in milliseconds.
pub(super) const RETRY_MS: u32 = 1_000;
/// How long nothing is sent at most, in milliseconds; proxies close connections that are silent
/// for 30 to 60 s.
pub(super) const HEARTBEAT_MS: u64 = 15_000;
/// The headers of a stream.
pub(super) const HEADERS: [(header::HeaderName, &str); 2] = [
    (header::CONTENT_TYPE, EVENT_STREAM),
    (header::CACHE_CONTROL, "no-store"),
];

/// Whether the client requests a stream of events instead of JSON.
pub(super) fn is_requested(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT).iter();
    let types = accepted
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','));
    types.into_iter().any(|media_type| {
        let name = media_type.split(';').next().unwrap_or_default();
        name.trim().eq_ignore_ascii_case(EVENT_STREAM)
    })
}

/// The position in `Last-Event-ID`; none where a client connects for the first time.
///
/// # Errors
/// When it is no position.
pub(super) fn last_event(headers: &HeaderMap) -> RestResult<Option<LedgerCursor>> {
    let Some(given) = headers.get(LAST_EVENT_ID) else {
        return Ok(None);
    };
    let position = given.to_str().ok().and_then(|text| text.parse().ok());
    let refused = || {
        let given = String::from_utf8_lossy(given.as_bytes()).into_owned();
        HttpProblem::value(format!(
            "header 'Last-Event-ID' is '{given}'; allowed: the id of an event, a number"
        ))
    };
    position.map(LedgerCursor).map(Some).ok_or_else(refused)
}

/// The response: what there is already, and then events as they happen, until the client goes or
/// the daemon ends.
///
/// # Errors
/// When the feed cannot be read.
pub(super) async fn respond(
    state: RestState,
    caller: Caller,
    query: EventFeedQuery,
) -> RestResult<Response> {
    // The position from which "now" counts is that of the request, not of the first read.
    let first = state.engine.poll_events(&caller, query, Duration::ZERO);
    let first = state.unless_shutting_down(first).await??;
    let events = EventStream {
        state,
        caller,
        query,
        unsent: Some(first),
    };
    let body = HttpBody::from_stream(chunks(events));
    Ok((Extension(CountedBody), HEADERS, body).into_response())
}

struct EventStream {
    state: RestState,
    caller: Caller,
    query: EventFeedQuery,
    /// The first page, until it is sent.
    unsent: Option<EventFeedPage>,
}

/// The body. A page is read when the connection can take it: a slow client delays only itself.
fn chunks(events: EventStream) -> impl Stream<Item = Result<Bytes, Infallible>> {
    stream::unfold(events, |mut events| async move {
        let chunk = events.next_chunk().await?;
        Some((Ok(chunk), events))
    })
}

impl EventStream {
    /// The next chunk of the body; none when the daemon ends or the feed cannot be read.
    async fn next_chunk(&mut self) -> Option<Bytes> {
        let (page, prefix) = match self.unsent.take() {
            Some(first) => (first, format!("retry: {RETRY_MS}\n")),
            None => {
                let heartbeat = Duration::from_millis(HEARTBEAT_MS);
                let engine = &self.state.engine;
                let next = engine.poll_events(&self.caller, self.query, heartbeat);
                let page = self.state.unless_shutting_down(next).await.ok()?.ok()?;
                (page, String::new())
            }
        };
        self.query.start = Some(page.next);
        Some(format_page(prefix, page))
    }
}

/// The lines of a page: events without a name, and `damaged` for entries that cannot be read, which
/// a client that listens to messages only does not receive. The last ones have no data: they are no event, but tell the client from
/// where to go on when all that happened meanwhile was not for it.
fn format_page(mut text: String, page: EventFeedPage) -> Bytes {
    use std::fmt::Write as _;
    let next = page.next.0;
    let mut damaged = page.damaged.into_iter().peekable();
    // Writing to a string cannot fail.
    let mut write_damaged = |text: &mut String, before: u64| {
        while let Some(range) = damaged.next_if(|range| range.end <= before) {
            let end = range.end;
            let data = serde_json::to_string(&damaged_entries(range)).unwrap_or_default();
            let _written = write!(text, "id: {end}\nevent: damaged\ndata: {data}\n\n");
        }
    };
    for record in page.records {
        write_damaged(&mut text, record.seq);
        let body = event_body(record);
        let data = serde_json::to_string(&body).unwrap_or_default();
        let _written = write!(text, "id: {}\ndata: {data}\n\n", body.cursor);
    }
    write_damaged(&mut text, next);
    let _written = write!(text, "id: {next}\n\n");
    Bytes::from(text)
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn headers(pairs: &[(header::HeaderName, &'static str)]) -> HeaderMap {
        let pair = |(name, value): &(header::HeaderName, &'static str)| {
            (name.clone(), HeaderValue::from_static(value))
        };
        pairs.iter().map(pair).collect()
    }

    #[test]
    fn a_stream_is_for_those_who_accept_it() {
        for (accept, is_stream) in [
            ("text/event-stream", true),
            ("application/json, Text/Event-Stream;q=0.9", true),
            ("application/json", false),
            ("text/event-stream-of-other-kind", false),
            ("*/*", false),
        ] {
            let headers = headers(&[(header::ACCEPT, accept)]);
            assert_eq!(is_requested(&headers), is_stream, "{accept}");
        }
        assert!(!is_requested(&HeaderMap::new()));
    }

    #[test]
    fn a_page_without_events_says_where_to_go_on() {
        let page = EventFeedPage {
            records: Vec::new(),
            damaged: Vec::new(),
            next: LedgerCursor(7),
            has_more: false,
        };
        let text = format_page("retry: 1000\n".to_owned(), page);
        assert_eq!(text, "retry: 1000\nid: 7\n\n");
    }

    #[test]
    fn damaged_entries_are_an_event_of_their_own() {
        let page = EventFeedPage {
            records: Vec::new(),
            damaged: std::iter::once(5..7).collect(),
            next: LedgerCursor(7),
            has_more: false,
        };
        let text = format_page(String::new(), page);
        let event = "id: 7\nevent: damaged\ndata: {\"first\":5,\"last\":6}\n\n";
        assert_eq!(text, format!("{event}id: 7\n\n"));
    }
}
