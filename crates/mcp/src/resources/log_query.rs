//! Which part of an execution's output a URI selects.

use ostler_journal::StreamSet;
use ostler_model::{Cursor, StreamName};
use ostler_render::{ExcerptBudget, REPLY_CHARS};

use crate::output::FRAME_CHARS;
use ostler_interface::cursor_argument::parse_cursor;
use ostler_interface::error::ApiError;
use ostler_interface::params::{Arguments, Parameter, ParameterKind};

/// Streams that can be selected; the default is all of them.
pub(super) const STREAMS: &[&str] = &["stdout", "stderr", "pty"];
/// The largest `tail` and `limit`.
const MAX_LINES: i64 = 1_000_000_000;

/// Which part of the output to read.
#[derive(Debug)]
pub(crate) struct LogResourceQuery {
    pub(super) streams: StreamSet,
    /// The number of lines from the end.
    pub(super) tail: Option<u64>,
    /// Only what follows this position.
    pub(super) cursor: Option<Cursor>,
    /// The most lines.
    pub(super) limit: Option<u64>,
}

impl LogResourceQuery {
    /// The parameters of its query string.
    pub(super) const PARAMETERS: &[Parameter] = &[
        Parameter::optional("stream", ParameterKind::Choice(STREAMS), "Only this stream"),
        Parameter::optional(
            "tail",
            ParameterKind::Integer(1, MAX_LINES),
            "Only the last lines",
        ),
        Parameter::optional("cursor", ParameterKind::Text, "From there on"),
        Parameter::optional(
            "limit",
            ParameterKind::Integer(1, MAX_LINES),
            "At most so many lines",
        ),
    ];

    /// Parses checked arguments.
    ///
    /// # Errors
    /// When the cursor is invalid, or both ends are limited.
    pub(super) fn new(mut arguments: Arguments) -> Result<Self, ApiError> {
        let streams = match arguments.text("stream").as_deref() {
            Some("stdout") => StreamSet::only(StreamName::Stdout),
            Some("stderr") => StreamSet::only(StreamName::Stderr),
            Some("pty") => StreamSet::only(StreamName::Pty),
            _ => StreamSet::OUTPUT,
        };
        let cursor = parse_cursor(&mut arguments)?;
        let (tail, limit) = (arguments.count("tail"), arguments.count("limit"));
        if tail.is_some() && (limit.is_some() || cursor.is_some()) {
            return Err(ApiError::value(
                "parameter 'tail' is given with 'cursor' or 'limit'; allowed: tail alone, or \
                 cursor and limit",
            ));
        }
        Ok(Self {
            streams,
            tail,
            cursor,
            limit,
        })
    }

    /// A client that selects one stream needs no stream names in the text.
    pub(super) fn budget(&self) -> ExcerptBudget {
        ExcerptBudget {
            headings: self.streams.iter().count() > 1,
            ..ExcerptBudget::new(REPLY_CHARS - FRAME_CHARS, usize::MAX)
        }
    }

    /// Whether lines are to be read in order from a position on, without a gap.
    pub(super) const fn is_forward(&self) -> bool {
        self.cursor.is_some() || self.limit.is_some()
    }
}
