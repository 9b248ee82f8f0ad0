//! Which part of an output is shown.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use ostler_journal::{LineQuery, Pattern, StreamSet};
use ostler_model::{Cursor, StreamName};

use crate::error::{Failure, bad_pattern};
use crate::params::{Arguments, Kind, Parameter};
use crate::render::{Moment, QUIET_CHARS, REPLY_CHARS, REPLY_LIMIT_CHARS, moment};

/// The most lines from the end that can be asked for.
const TAIL_LIMIT: i64 = 1_000_000_000;
/// The smallest reply that can be asked for, in characters: less cannot show both streams.
const MIN_CHARS: usize = 2_000;

pub(in crate::mcp::tools) const CURSOR: Parameter = Parameter::optional(
    "cursor",
    Kind::Text,
    "From an earlier answer: only what came after it",
);
pub(in crate::mcp::tools) const STREAM: Parameter = Parameter::optional(
    "stream",
    Kind::Choice(&["stdout", "stderr"]),
    "Default: both",
);
pub(in crate::mcp::tools) const SINCE: Parameter =
    Parameter::optional("since", Kind::Text, "A time, or 10m for ten minutes ago");
pub(in crate::mcp::tools) const TAIL: Parameter =
    Parameter::optional("tail", Kind::Integer(0, TAIL_LIMIT), "Last n lines");
pub(in crate::mcp::tools) const GREP: Parameter = Parameter::optional(
    "grep",
    Kind::Text,
    "Perl-style regex: only lines that match",
);
pub(in crate::mcp::tools) const RAW: Parameter =
    Parameter::optional("raw", Kind::Flag, "With colours and control sequences");
#[expect(clippy::cast_possible_wrap, reason = "at most 20,000")]
pub(in crate::mcp::tools) const MAX_CHARS: Parameter = Parameter::optional(
    "max_chars",
    Kind::Integer(MIN_CHARS as i64, REPLY_LIMIT_CHARS as i64),
    "Longest answer; default 12000",
);

/// What to show of an output, and in how many characters.
#[derive(Debug, Clone)]
pub(in crate::mcp::tools) struct Selection {
    pub(in crate::mcp::tools) query: LineQuery,
    pub(in crate::mcp::tools) raw: bool,
    pub(in crate::mcp::tools) chars: usize,
    /// The characters of a long output in which nothing says that something failed.
    pub(in crate::mcp::tools) quiet_chars: usize,
    /// Whether lines follow one another from the query's position on, none left out.
    pub(in crate::mcp::tools) paged: bool,
}

impl Selection {
    /// Everything, in so many characters.
    pub(in crate::mcp::tools) fn everything(chars: usize) -> Self {
        Self {
            query: LineQuery::default(),
            raw: false,
            chars,
            quiet_chars: chars,
            paged: false,
        }
    }

    /// Everything, in the size of the answer asked for.
    pub(in crate::mcp::tools) fn sized(arguments: &Arguments) -> Self {
        let mut selection = Self::everything(chars(arguments));
        selection.quiet_chars = quiet_chars(arguments);
        selection
    }

    /// What came after a position.
    pub(in crate::mcp::tools) fn from(cursor: Cursor) -> Self {
        let mut selection = Self::everything(REPLY_CHARS);
        selection.query.from = Some(cursor);
        selection
    }

    /// Reads the parameters that say which lines: `cursor`, `tail`, `grep`.
    pub(in crate::mcp::tools) fn lines(arguments: &mut Arguments) -> Result<Self, Failure> {
        let mut selection = Self::everything(REPLY_CHARS);
        selection.query.from = cursor(arguments)?;
        selection.query.tail = arguments.count("tail");
        selection.query.grep = grep(arguments)?;
        selection.paged = selection.is_onward();
        Ok(selection)
    }

    /// Reads the parameters of this file.
    pub(in crate::mcp::tools) fn read(arguments: &mut Arguments) -> Result<Self, Failure> {
        let raw = arguments.flag("raw");
        let lined = ["since", "tail", "grep"];
        let mut given = arguments.given();
        if let Some(name) = given.find(|name| raw && lined.contains(name)) {
            return Err(Failure::value(format!(
                "parameter '{name}' does not go with raw; allowed with it: cursor, stream"
            )));
        }
        drop(given);
        let mut query = LineQuery {
            from: cursor(arguments)?,
            streams: streams(arguments),
            tail: arguments.count("tail"),
            ..LineQuery::default()
        };
        if let Some(given) = arguments.text("since") {
            match moment("since", &given, Timestamp::now(), &TimeZone::system())? {
                Moment::At(at) => query.since = Some(at),
                Moment::Position(cursor) => query.from = Some(cursor),
            }
        }
        query.grep = grep(arguments)?;
        let mut selection = Self {
            query,
            raw,
            ..Self::sized(arguments)
        };
        selection.paged = selection.is_onward();
        Ok(selection)
    }

    /// Whether it begins at a position, and not so many lines before the end.
    const fn is_onward(&self) -> bool {
        self.query.from.is_some() && self.query.tail.is_none()
    }
}

/// The size of the answer.
pub(in crate::mcp::tools) fn chars(arguments: &Arguments) -> usize {
    let chars = arguments.count("max_chars");
    chars
        .and_then(|chars| usize::try_from(chars).ok())
        .unwrap_or(REPLY_CHARS)
}

/// The size of an answer that tells of success; the full one where a size or a part is asked
/// for.
fn quiet_chars(arguments: &Arguments) -> usize {
    let parts = ["max_chars", "cursor", "since", "tail", "grep"];
    if arguments.given().any(|name| parts.contains(&name)) {
        chars(arguments)
    } else {
        QUIET_CHARS
    }
}

fn grep(arguments: &mut Arguments) -> Result<Option<Pattern>, Failure> {
    let Some(given) = arguments.text("grep") else {
        return Ok(None);
    };
    let pattern = Pattern::new(&given);
    Ok(Some(
        pattern.map_err(|error| bad_pattern("grep", &given, &error))?,
    ))
}

fn cursor(arguments: &mut Arguments) -> Result<Option<Cursor>, Failure> {
    let given = arguments.text("cursor");
    let cursor = given.map(|given| given.parse()).transpose();
    cursor.map_err(|error: ostler_model::cursor::CursorError| {
        Failure::value(format!("parameter 'cursor': {error}"))
    })
}

fn streams(arguments: &mut Arguments) -> StreamSet {
    match arguments.text("stream").as_deref() {
        Some("stdout") => StreamSet::only(StreamName::Stdout).with(StreamName::Pty),
        Some("stderr") => StreamSet::only(StreamName::Stderr),
        _ => StreamSet::OUTPUT,
    }
}
