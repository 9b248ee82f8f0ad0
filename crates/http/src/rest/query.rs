//! Query parameters of journals and lists.

use axum::extract::{FromRequestParts, Request};
use axum::http::request::Parts;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use ostler_journal::{GrepMode, LineQuery, StreamSet};
use ostler_model::{Cursor, StreamName};
use ostler_render::{TimeOrCursor, parse_time_or_cursor};

use ostler_interface::cursor_argument::parse_cursor;
use ostler_interface::error::{ApiError, parse_grep};
use ostler_interface::http::HttpProblem;
use ostler_interface::pagination::{CursorKey, ListPage, ListPosition, PageLimits, after_cursor};
use ostler_interface::params::{Arguments, Parameter, ParameterKind};

/// The most lines from either end that can be requested.
const LINES_LIMIT: i64 = 1_000_000_000;

pub(super) const TAIL: Parameter = Parameter::optional(
    "tail",
    ParameterKind::Integer(0, LINES_LIMIT),
    "Only the last n lines",
);
pub(super) const HEAD: Parameter = Parameter::optional(
    "head",
    ParameterKind::Integer(0, LINES_LIMIT),
    "Only the first n lines",
);
pub(super) const SINCE: Parameter =
    Parameter::optional("since", ParameterKind::Text, "From then on");
pub(super) const UNTIL: Parameter = Parameter::optional("until", ParameterKind::Text, "Up to then");
pub(super) const GREP: Parameter =
    Parameter::optional("grep", ParameterKind::Text, "Lines with a match");
pub(super) const GREP_MODE: Parameter = Parameter::optional(
    "grep_mode",
    ParameterKind::Choice(&["line", "content"]),
    "Whole lines, or matches",
)
.with_default_text("line");
pub(super) const CURSOR: Parameter =
    Parameter::optional("cursor", ParameterKind::Text, "Where to go on");
pub(super) const STREAM: Parameter = Parameter::optional(
    "stream",
    ParameterKind::List,
    "Only these streams: stdout, stderr, pty, stdin",
);

/// The most entries of one list.
const LIST_ENTRIES: i64 = 100_000;
/// Entries of a list by default.
const LIST_DEFAULT: i64 = 1_000;

pub(super) const LIST_LIMIT: Parameter = Parameter::optional(
    "limit",
    ParameterKind::Integer(1, LIST_ENTRIES),
    "At most so many",
)
.with_default(LIST_DEFAULT);
pub(super) const LIST_CURSOR: Parameter =
    Parameter::optional("cursor", ParameterKind::Text, "The next of the list before");

/// The page of a list selected by [`LIST_LIMIT`] and [`LIST_CURSOR`].
pub(super) fn list_page<T, K: CursorKey>(
    entries: impl IntoIterator<Item = T>,
    position: impl Fn(&T) -> ListPosition<K>,
    arguments: &mut Arguments,
) -> Result<ListPage<T>, HttpProblem> {
    let limit = arguments.count("limit").unwrap_or_default();
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let remaining = after_cursor(entries, position, arguments.text("cursor").as_deref())?;
    Ok(PageLimits::of(limit).fill_by_count(remaining))
}

/// Marks a request whose handler looks at its query string.
#[derive(Debug, Clone, Copy)]
struct QueryMarker;

/// Refuses a query string that the handler has not extracted: what was meant as an option must not be
/// ignored. For requests with a body, which is extracted last.
pub(super) fn check_unused(request: &Request) -> Result<(), HttpProblem> {
    let is_used = request.extensions().get::<QueryMarker>().is_some();
    let query = request.uri().query().filter(|_| !is_used);
    match query {
        Some(query) => QueryString(query.to_owned()).check(&[]).map(drop),
        None => Ok(()),
    }
}

/// The query string of a request, not validated yet.
#[derive(Debug)]
pub(super) struct QueryString(String);

impl<S: Sync> FromRequestParts<S> for QueryString {
    type Rejection = HttpProblem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, HttpProblem> {
        parts.extensions.insert(QueryMarker);
        Ok(Self(parts.uri.query().unwrap_or_default().to_owned()))
    }
}

impl QueryString {
    /// Holds the query string against what the route takes.
    pub(super) fn check(&self, table: &'static [Parameter]) -> Result<Arguments, HttpProblem> {
        Arguments::check_query(table, &self.0).map_err(|bad| ApiError::from(bad).into())
    }

    /// A `Link` target with the same query from `cursor` on (RFC 8288), relative to the request's
    /// own URL.
    pub(super) fn link_to(&self, cursor: &str) -> String {
        let other_pairs =
            form_urlencoded::parse(self.0.as_bytes()).filter(|(name, _)| name != "cursor");
        let query = form_urlencoded::Serializer::new(String::new())
            .extend_pairs(other_pairs)
            .append_pair("cursor", cursor)
            .finish();
        format!("<?{query}>; rel=\"next\"")
    }
}

/// Time and pattern conditions; parameters that are not in the route's table stay unset.
pub(super) fn conditions(arguments: &mut Arguments) -> Result<LineQuery, HttpProblem> {
    let mut query = LineQuery::default();
    let now = Timestamp::now();
    let zone = TimeZone::system();
    let parse = |name, given: &str| {
        parse_time_or_cursor(name, given, now, &zone)
            .map_err(|error| HttpProblem::from(ApiError::from(error)))
    };
    if let Some(given) = arguments.text("since") {
        match parse("since", &given)? {
            TimeOrCursor::Time(at) => query.since = Some(at),
            TimeOrCursor::Cursor(cursor) => query.from = Some(cursor),
        }
    }
    if let Some(given) = arguments.text("until") {
        match parse("until", &given)? {
            TimeOrCursor::Time(at) => query.until = Some(at),
            TimeOrCursor::Cursor(cursor) => query.until_cursor = Some(cursor),
        }
    }
    if let Some(given) = arguments.text("grep") {
        query.grep = Some(parse_grep(&given)?);
    }
    query.tail = arguments.count("tail");
    Ok(query)
}

/// Parses `grep_mode`.
pub(super) fn grep_mode(arguments: &mut Arguments) -> GrepMode {
    match arguments.text("grep_mode").as_deref() {
        Some("content") => GrepMode::Content,
        _ => GrepMode::Line,
    }
}

/// `cursor`; none is the oldest byte kept.
pub(super) fn cursor(arguments: &mut Arguments) -> Result<Option<Cursor>, HttpProblem> {
    Ok(parse_cursor(arguments)?)
}

/// `stream`, repeatable; none is what the command printed.
pub(super) fn stream_set(arguments: &mut Arguments) -> Result<StreamSet, HttpProblem> {
    let names = arguments.list("stream");
    if names.is_empty() {
        return Ok(StreamSet::OUTPUT);
    }
    names.iter().map(|word| stream(word)).collect()
}

fn stream(word: &str) -> Result<StreamName, HttpProblem> {
    match word {
        "stdout" => Ok(StreamName::Stdout),
        "stderr" => Ok(StreamName::Stderr),
        "pty" => Ok(StreamName::Pty),
        "stdin" => Ok(StreamName::Stdin),
        other => Err(HttpProblem::value(format!(
            "parameter 'stream' is '{other}'; allowed: stdout, stderr, pty, stdin"
        ))),
    }
}
