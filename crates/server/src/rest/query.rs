//! Questions to a journal, as query parameters ask them.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use ostler_journal::{GrepMode, LineQuery, Pattern, StreamSet};
use ostler_model::{Cursor, StreamName};

use crate::error::{Failure, bad_pattern};
use crate::params::{Arguments, Kind, Parameter};
use crate::render::{Moment, moment};
use crate::window::{Key, Page, Position, Window, behind};
use crate::wire::Problem;

/// The most lines from either end that can be asked for.
const LINES_LIMIT: i64 = 1_000_000_000;

pub(super) const TAIL: Parameter = Parameter::optional(
    "tail",
    Kind::Integer(0, LINES_LIMIT),
    "Only the last n lines",
);
pub(super) const HEAD: Parameter = Parameter::optional(
    "head",
    Kind::Integer(0, LINES_LIMIT),
    "Only the first n lines",
);
pub(super) const SINCE: Parameter = Parameter::optional("since", Kind::Text, "From then on");
pub(super) const UNTIL: Parameter = Parameter::optional("until", Kind::Text, "Up to then");
pub(super) const GREP: Parameter = Parameter::optional("grep", Kind::Text, "Lines with a match");
pub(super) const GREP_MODE: Parameter = Parameter::optional(
    "grep_mode",
    Kind::Choice(&["line", "content"]),
    "Whole lines, or matches",
)
.or_text("line");
pub(super) const CURSOR: Parameter = Parameter::optional("cursor", Kind::Text, "Where to go on");
pub(super) const STREAM: Parameter = Parameter::optional(
    "stream",
    Kind::List,
    "Only these streams: stdout, stderr, pty, stdin",
);

/// The most entries one list can be asked for.
const LIST_ENTRIES: i64 = 100_000;
/// The entries of a list that is not asked for more.
const LIST_DEFAULT: i64 = 1_000;

pub(super) const LIST_LIMIT: Parameter =
    Parameter::optional("limit", Kind::Integer(1, LIST_ENTRIES), "At most so many")
        .or(LIST_DEFAULT);
pub(super) const LIST_CURSOR: Parameter =
    Parameter::optional("cursor", Kind::Text, "The next of the list before");

/// The window of a list that [`LIST_LIMIT`] and [`LIST_CURSOR`] ask for.
pub(super) fn window<T, K: Key>(
    found: impl IntoIterator<Item = T>,
    position: impl Fn(&T) -> Position<K>,
    arguments: &mut Arguments,
) -> Result<Page<T>, Problem> {
    let limit = arguments.count("limit").unwrap_or_default();
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let rest = behind(found, position, arguments.text("cursor").as_deref())?;
    Ok(Window::of(limit).count(rest))
}

/// The query string of a request, not yet held against a table.
#[derive(Debug)]
pub(super) struct Asked(String);

impl<S: Sync> FromRequestParts<S> for Asked {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Problem> {
        Ok(Self(parts.uri.query().unwrap_or_default().to_owned()))
    }
}

impl Asked {
    /// Holds the query string against what the route takes.
    pub(super) fn check(&self, table: &'static [Parameter]) -> Result<Arguments, Problem> {
        Arguments::check_query(table, &self.0).map_err(|bad| Failure::from(bad).into())
    }

    /// A `Link` to the same question from `cursor` on (RFC 8288), relative to the request's own
    /// address.
    pub(super) fn link_to(&self, cursor: &str) -> String {
        let asked = form_urlencoded::parse(self.0.as_bytes()).filter(|(name, _)| name != "cursor");
        let query = form_urlencoded::Serializer::new(String::new())
            .extend_pairs(asked)
            .append_pair("cursor", cursor)
            .finish();
        format!("<?{query}>; rel=\"next\"")
    }
}

/// Time and pattern conditions; parameters that are not in the route's table stay unset.
pub(super) fn conditions(arguments: &mut Arguments) -> Result<LineQuery, Problem> {
    let mut query = LineQuery::default();
    let now = Timestamp::now();
    let zone = TimeZone::system();
    let read = |name, given: &str| {
        moment(name, given, now, &zone).map_err(|error| Problem::from(Failure::from(error)))
    };
    if let Some(given) = arguments.text("since") {
        match read("since", &given)? {
            Moment::At(at) => query.since = Some(at),
            Moment::Position(cursor) => query.from = Some(cursor),
        }
    }
    if let Some(given) = arguments.text("until") {
        match read("until", &given)? {
            Moment::At(at) => query.until = Some(at),
            Moment::Position(cursor) => query.until_cursor = Some(cursor),
        }
    }
    if let Some(given) = arguments.text("grep") {
        let pattern = Pattern::new(&given).map_err(|error| bad_pattern("grep", &given, &error))?;
        query.grep = Some(pattern);
    }
    query.tail = arguments.count("tail");
    Ok(query)
}

/// `grep_mode`.
pub(super) fn grep_mode(arguments: &mut Arguments) -> GrepMode {
    match arguments.text("grep_mode").as_deref() {
        Some("content") => GrepMode::Content,
        _ => GrepMode::Line,
    }
}

/// `cursor`; none is the oldest byte kept.
pub(super) fn cursor(arguments: &mut Arguments) -> Result<Option<Cursor>, Problem> {
    let Some(given) = arguments.text("cursor") else {
        return Ok(None);
    };
    given.parse().map(Some).map_err(|error| {
        let error: ostler_model::cursor::CursorError = error;
        Problem::value(format!("parameter 'cursor': {error}"))
    })
}

/// `stream`, repeatable; none is what the command printed.
pub(super) fn streams(arguments: &mut Arguments) -> Result<StreamSet, Problem> {
    let given = arguments.list("stream");
    if given.is_empty() {
        return Ok(StreamSet::OUTPUT);
    }
    given.iter().map(|word| stream(word)).collect()
}

fn stream(word: &str) -> Result<StreamName, Problem> {
    match word {
        "stdout" => Ok(StreamName::Stdout),
        "stderr" => Ok(StreamName::Stderr),
        "pty" => Ok(StreamName::Pty),
        "stdin" => Ok(StreamName::Stdin),
        other => Err(Problem::value(format!(
            "parameter 'stream' is '{other}'; allowed: stdout, stderr, pty, stdin"
        ))),
    }
}
