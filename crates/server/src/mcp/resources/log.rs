//! `proc://{id}/log`: clean text within the budget of a reply, with the omissions counted and the
//! position to continue from.

use ostler_engine::ExecutionInfo;
use ostler_journal::{Journal, LineQuery, StreamSet};
use ostler_model::{Cursor, StreamName};
use ostler_render::{ExcerptBudget, ExcerptInput, REPLY_CHARS, excerpt};
use serde_json::{Value, json};

use super::uri::log_from;
use crate::error::ApiError;
use crate::mcp::output::{FRAME_CHARS, omitted_fields, output_notes, render_whole};
use crate::output_reader::read_page;
use crate::output_reader::{read_slice, unfinished_mode};
use crate::params::{Arguments, Parameter, ParameterKind};

/// Streams that can be selected; the default is all of them.
pub(super) const STREAMS: &[&str] = &["stdout", "stderr", "pty"];
/// The largest `tail` and `limit`.
const MAX_LINES: i64 = 1_000_000_000;

/// Which part of the output to read.
#[derive(Debug)]
pub(in crate::mcp) struct LogResourceQuery {
    streams: StreamSet,
    /// Only the last so many lines.
    tail: Option<u64>,
    /// Only what follows this position.
    cursor: Option<Cursor>,
    /// At most so many lines.
    limit: Option<u64>,
}

/// What is shown of the output.
pub(super) struct LogText {
    pub(super) text: String,
    pub(super) fields: Value,
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

    /// From checked arguments.
    ///
    /// # Errors
    /// When the cursor is none, or both ends are limited.
    pub(super) fn new(mut arguments: Arguments) -> Result<Self, ApiError> {
        let streams = match arguments.text("stream").as_deref() {
            Some("stdout") => StreamSet::only(StreamName::Stdout),
            Some("stderr") => StreamSet::only(StreamName::Stderr),
            Some("pty") => StreamSet::only(StreamName::Pty),
            _ => StreamSet::OUTPUT,
        };
        let cursor = match arguments.text("cursor") {
            Some(text) => Some(parse_cursor(&text)?),
            None => None,
        };
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
    fn budget(&self) -> ExcerptBudget {
        ExcerptBudget {
            headings: self.streams.iter().count() > 1,
            ..ExcerptBudget::new(REPLY_CHARS - FRAME_CHARS, usize::MAX)
        }
    }

    /// Whether lines are to be read in order from a position on, without a gap.
    const fn is_forward(&self) -> bool {
        self.cursor.is_some() || self.limit.is_some()
    }
}

fn parse_cursor(text: &str) -> Result<Cursor, ApiError> {
    text.parse()
        .map_err(|error: ostler_model::cursor::CursorError| {
            ApiError::value(format!("parameter 'cursor': {error}"))
        })
}

/// Reads the part asked for.
pub(super) async fn read_log(
    journal: &Journal,
    info: &ExecutionInfo,
    query: LogResourceQuery,
) -> Result<LogText, ApiError> {
    let page = if query.is_forward() {
        read_forward(journal, info, query).await?
    } else {
        read_both_ends(journal, info, query).await?
    };
    let mut text = page.text;
    if !text.is_empty() {
        text.push('\n');
    }
    text.push_str(&footer(info, page.next, page.omitted_from));
    for note in page.notes.iter().chain(&info.state.degraded) {
        text.push_str("\nnote: ");
        text.push_str(note);
    }
    let mut fields = json!({
        "id": info.id.short(),
        "status": info.status().process,
        "cursor": page.next,
    });
    if let Some(omitted) = page.omitted {
        fields["omitted"] = omitted;
    }
    Ok(LogText { text, fields })
}

/// The text, and where to continue.
struct LogPage {
    text: String,
    /// The position after everything there was.
    next: Cursor,
    /// The position of the omitted part.
    omitted_from: Option<Cursor>,
    omitted: Option<Value>,
    notes: Vec<String>,
}

/// The beginning and the end, with the lines in between counted.
async fn read_both_ends(
    journal: &Journal,
    info: &ExecutionInfo,
    query: LogResourceQuery,
) -> Result<LogPage, ApiError> {
    let lines = LineQuery {
        streams: query.streams,
        tail: query.tail,
        unfinished: unfinished_mode(info),
        ..LineQuery::default()
    };
    let rows = read_slice(journal, info, lines).await?;
    let (next, notes) = (rows.next, output_notes(info, journal, &rows)?);
    let budget = query.budget();
    let excerpt = excerpt(rows.into_excerpt_input(), budget);
    Ok(LogPage {
        text: excerpt.blocks.join("\n"),
        next,
        omitted_from: excerpt.omitted.map(|omitted| Cursor {
            offset: omitted.offset,
            event: 0,
        }),
        omitted: excerpt.omitted.map(omitted_fields),
        notes,
    })
}

/// Line after line from the cursor on, as far as the budget allows, without omissions.
async fn read_forward(
    journal: &Journal,
    info: &ExecutionInfo,
    query: LogResourceQuery,
) -> Result<LogPage, ApiError> {
    let lines = LineQuery {
        from: Some(query.cursor.unwrap_or(Cursor::START)),
        streams: query.streams,
        unfinished: unfinished_mode(info),
        max_lines: query.limit.unwrap_or(u64::MAX),
        ..LineQuery::default()
    };
    let budget = query.budget();
    let show = move |rows| render_whole(ExcerptInput::from_rows(rows), budget);
    let page = read_page(journal, info, lines, budget.chars, show).await?;
    let more = (page.remaining_lines > 0).then_some(page.next);
    Ok(LogPage {
        text: page.blocks.join("\n"),
        next: page.next,
        omitted_from: more,
        omitted: more.map(|cursor| json!({"cursor": cursor, "lines": page.remaining_lines})),
        notes: output_notes(info, journal, &page.slice)?,
    })
}

/// The execution's status, and how to continue.
fn footer(info: &ExecutionInfo, next: Cursor, left_out: Option<Cursor>) -> String {
    let mut text = format!("[status: {}", info.status().process.as_str());
    if let Some(ending) = &info.state.ending {
        text.push_str(", ");
        text.push_str(&ending.describe());
    }
    match left_out {
        Some(cursor) => {
            text.push_str("; left out here: ");
            text.push_str(&log_from(info, cursor));
        }
        None if info.state.is_finished() => {}
        None => {
            text.push_str("; later output: ");
            text.push_str(&log_from(info, next));
        }
    }
    text.push(']');
    text
}
