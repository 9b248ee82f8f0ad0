//! Selects the part of an output that is shown.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use ostler_journal::{LineQuery, Pattern, StreamSet};
use ostler_model::{Cursor, StreamName};
use ostler_render::{
    QUIET_CHARS, REPLY_CHARS, REPLY_LIMIT_CHARS, TimeOrCursor, parse_time_or_cursor,
};

use ostler_interface::cursor_argument::parse_cursor;
use ostler_interface::error::{ApiError, parse_grep};
use ostler_interface::params::{Arguments, Parameter, ParameterKind};

/// The largest `tail`.
const TAIL_LIMIT: i64 = 1_000_000_000;
/// The smallest reply, in characters: less cannot show both streams.
const MIN_CHARS: usize = 2_000;

pub(in crate::tools) const CURSOR: Parameter = Parameter::optional(
    "cursor",
    ParameterKind::Text,
    "From an earlier answer: only what came after it",
);
pub(in crate::tools) const STREAM: Parameter = Parameter::optional(
    "stream",
    ParameterKind::Choice(&["stdout", "stderr"]),
    "Default: both",
);
pub(in crate::tools) const SINCE: Parameter = Parameter::optional(
    "since",
    ParameterKind::Text,
    "A time, or 10m for ten minutes ago",
);
pub(in crate::tools) const TAIL: Parameter = Parameter::optional(
    "tail",
    ParameterKind::Integer(0, TAIL_LIMIT),
    "Last n lines",
);
pub(in crate::tools) const GREP: Parameter = Parameter::optional(
    "grep",
    ParameterKind::Text,
    "Perl-style regex: only lines that match",
);
pub(in crate::tools) const RAW: Parameter = Parameter::optional(
    "raw",
    ParameterKind::Flag,
    "With colours and control sequences",
);
#[expect(clippy::cast_possible_wrap, reason = "at most 20,000")]
pub(in crate::tools) const MAX_CHARS: Parameter = Parameter::optional(
    "max_chars",
    ParameterKind::Integer(MIN_CHARS as i64, REPLY_LIMIT_CHARS as i64),
    "Longest answer; default 12000",
);

/// What to show of an output, and in how many characters.
#[derive(Debug, Clone)]
pub(in crate::tools) struct OutputSelection {
    pub(in crate::tools) query: LineQuery,
    pub(in crate::tools) raw: bool,
    pub(in crate::tools) chars: usize,
    /// Characters of a long output without failure lines.
    pub(in crate::tools) quiet_chars: usize,
    /// Whether lines are read in order from the query's position on, without omissions.
    pub(in crate::tools) paged: bool,
}

impl OutputSelection {
    /// All output, in at most `chars` characters.
    pub(in crate::tools) fn everything(chars: usize) -> Self {
        Self {
            query: LineQuery::default(),
            raw: false,
            chars,
            quiet_chars: chars,
            paged: false,
        }
    }

    /// Everything, in the size the arguments give.
    pub(in crate::tools) fn with_size(arguments: &Arguments) -> Self {
        let mut selection = Self::everything(max_chars(arguments));
        selection.quiet_chars = max_quiet_chars(arguments);
        selection
    }

    /// The output after a position.
    pub(in crate::tools) fn after(cursor: Cursor) -> Self {
        let mut selection = Self::everything(REPLY_CHARS);
        selection.query.from = Some(cursor);
        selection
    }

    /// Parses the parameters that select lines: `cursor`, `tail`, `grep`.
    pub(in crate::tools) fn parse_lines(arguments: &mut Arguments) -> Result<Self, ApiError> {
        let mut selection = Self::everything(REPLY_CHARS);
        selection.query.from = parse_cursor(arguments)?;
        selection.query.tail = arguments.count("tail");
        selection.query.grep = grep_pattern(arguments)?;
        selection.paged = selection.is_forward();
        Ok(selection)
    }

    /// Reads the parameters of this file.
    pub(in crate::tools) fn parse(arguments: &mut Arguments) -> Result<Self, ApiError> {
        let raw = arguments.flag("raw");
        let line_parameters = ["since", "tail", "grep"];
        let mut given = arguments.given_names();
        if let Some(name) = given.find(|name| raw && line_parameters.contains(name)) {
            return Err(ApiError::value(format!(
                "parameter '{name}' does not go with raw; allowed with it: cursor, stream"
            )));
        }
        drop(given);
        let mut query = LineQuery {
            from: parse_cursor(arguments)?,
            streams: parse_streams(arguments),
            tail: arguments.count("tail"),
            ..LineQuery::default()
        };
        if let Some(given) = arguments.text("since") {
            match parse_time_or_cursor("since", &given, Timestamp::now(), &TimeZone::system())? {
                TimeOrCursor::Time(at) => query.since = Some(at),
                TimeOrCursor::Cursor(cursor) => query.from = Some(cursor),
            }
        }
        query.grep = grep_pattern(arguments)?;
        let mut selection = Self {
            query,
            raw,
            ..Self::with_size(arguments)
        };
        selection.paged = selection.is_forward();
        Ok(selection)
    }

    /// Whether it selects all that was printed from its position on.
    pub(in crate::tools) fn shows_everything(&self) -> bool {
        let query = &self.query;
        let is_filtered = query.grep.is_some() || query.since.is_some() || query.tail.is_some();
        !is_filtered && query.streams == StreamSet::OUTPUT
    }

    /// Whether it starts at a position, not at a number of lines before the end.
    const fn is_forward(&self) -> bool {
        self.query.from.is_some() && self.query.tail.is_none()
    }
}

/// The size of the answer.
pub(in crate::tools) fn max_chars(arguments: &Arguments) -> usize {
    let chars = arguments.count("max_chars");
    chars
        .and_then(|chars| usize::try_from(chars).ok())
        .unwrap_or(REPLY_CHARS)
}

/// The size of an answer about a success; the full one where a size or a part is given.
fn max_quiet_chars(arguments: &Arguments) -> usize {
    let parts = ["max_chars", "cursor", "since", "tail", "grep"];
    if arguments.given_names().any(|name| parts.contains(&name)) {
        max_chars(arguments)
    } else {
        QUIET_CHARS
    }
}

fn grep_pattern(arguments: &mut Arguments) -> Result<Option<Pattern>, ApiError> {
    let given = arguments.text("grep");
    given.map(|given| parse_grep(&given)).transpose()
}

fn parse_streams(arguments: &mut Arguments) -> StreamSet {
    match arguments.text("stream").as_deref() {
        Some("stdout") => StreamSet::only(StreamName::Stdout).with(StreamName::Pty),
        Some("stderr") => StreamSet::only(StreamName::Stderr),
        _ => StreamSet::OUTPUT,
    }
}
