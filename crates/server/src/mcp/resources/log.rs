//! `proc://{id}/log`: clean text within the budget of a reply, what is left out counted, and
//! where to read on.

use ostler_engine::Info;
use ostler_journal::{Journal, LineQuery, StreamSet};
use ostler_model::{Cursor, StreamName};
use serde_json::{Value, json};

use super::uri::log_from;
use crate::error::Failure;
use crate::mcp::output::{FRAME_CHARS, notes, omitted_fields, whole};
use crate::params::{Arguments, Kind, Parameter};
use crate::reading::forward::page;
use crate::reading::{last_line, slice};
use crate::render::{Budget, Material, REPLY_CHARS, excerpt};

/// Streams that can be asked for; none asks for all of them.
pub(super) const STREAMS: &[&str] = &["stdout", "stderr", "pty"];
/// The most lines that can be asked for.
const LINES_LIMIT: i64 = 1_000_000_000;

/// Which part of the output.
#[derive(Debug)]
pub(in crate::mcp) struct LogQuery {
    streams: StreamSet,
    /// Only the last so many lines.
    tail: Option<u64>,
    /// From here on.
    cursor: Option<Cursor>,
    /// At most so many lines.
    limit: Option<u64>,
}

/// What is shown of it.
pub(super) struct Log {
    pub(super) text: String,
    pub(super) fields: Value,
}

impl LogQuery {
    /// What its query string may say.
    pub(super) const PARAMETERS: &[Parameter] = &[
        Parameter::optional("stream", Kind::Choice(STREAMS), "Only this stream"),
        Parameter::optional("tail", Kind::Integer(1, LINES_LIMIT), "Only the last lines"),
        Parameter::optional("cursor", Kind::Text, "From there on"),
        Parameter::optional(
            "limit",
            Kind::Integer(1, LINES_LIMIT),
            "At most so many lines",
        ),
    ];

    /// From checked arguments.
    ///
    /// # Errors
    /// When the cursor is none, or both ends are limited.
    pub(super) fn new(mut given: Arguments) -> Result<Self, Failure> {
        let streams = match given.text("stream").as_deref() {
            Some("stdout") => StreamSet::only(StreamName::Stdout),
            Some("stderr") => StreamSet::only(StreamName::Stderr),
            Some("pty") => StreamSet::only(StreamName::Pty),
            _ => StreamSet::OUTPUT,
        };
        let cursor = match given.text("cursor") {
            Some(text) => Some(cursor(&text)?),
            None => None,
        };
        let (tail, limit) = (given.count("tail"), given.count("limit"));
        if tail.is_some() && (limit.is_some() || cursor.is_some()) {
            return Err(Failure::value(
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

    /// Who asks for one stream needs not be told which it is.
    fn budget(&self) -> Budget {
        Budget {
            headings: self.streams.iter().count() > 1,
            ..Budget::new(REPLY_CHARS - FRAME_CHARS, usize::MAX)
        }
    }

    /// Whether lines are wanted in order from a position on, without a gap.
    const fn is_onward(&self) -> bool {
        self.cursor.is_some() || self.limit.is_some()
    }
}

fn cursor(text: &str) -> Result<Cursor, Failure> {
    text.parse()
        .map_err(|error: ostler_model::cursor::CursorError| {
            Failure::value(format!("parameter 'cursor': {error}"))
        })
}

/// Reads the part asked for.
pub(super) async fn read(journal: &Journal, info: &Info, query: LogQuery) -> Result<Log, Failure> {
    let shown = if query.is_onward() {
        onwards(journal, info, query).await?
    } else {
        both_ends(journal, info, query).await?
    };
    let mut text = shown.text;
    if !text.is_empty() {
        text.push('\n');
    }
    text.push_str(&footer(info, shown.next, shown.left_out));
    for note in shown.notes.iter().chain(&info.state.degraded) {
        text.push_str("\nnote: ");
        text.push_str(note);
    }
    let mut fields = json!({
        "id": info.id.short(),
        "status": info.status().process,
        "cursor": shown.next,
    });
    if let Some(omitted) = shown.omitted {
        fields["omitted"] = omitted;
    }
    Ok(Log { text, fields })
}

/// What is shown, and where to go on.
struct Shown {
    text: String,
    /// Behind everything there was.
    next: Cursor,
    /// Where to read what was left out.
    left_out: Option<Cursor>,
    omitted: Option<Value>,
    notes: Vec<String>,
}

/// The beginning and the end, what lies between counted.
async fn both_ends(journal: &Journal, info: &Info, query: LogQuery) -> Result<Shown, Failure> {
    let lines = LineQuery {
        streams: query.streams,
        tail: query.tail,
        unfinished: last_line(info),
        ..LineQuery::default()
    };
    let found = slice(journal, info, lines).await?;
    let (next, notes) = (found.next, notes(info, journal, &found)?);
    let budget = query.budget();
    let excerpt = excerpt(found.material(), budget);
    Ok(Shown {
        text: excerpt.blocks.join("\n"),
        next,
        left_out: excerpt.omitted.map(|omitted| Cursor {
            offset: omitted.offset,
            event: 0,
        }),
        omitted: excerpt.omitted.map(omitted_fields),
        notes,
    })
}

/// Line after line from the cursor on, as far as the budget goes, none left out.
async fn onwards(journal: &Journal, info: &Info, query: LogQuery) -> Result<Shown, Failure> {
    let lines = LineQuery {
        from: Some(query.cursor.unwrap_or(Cursor::START)),
        streams: query.streams,
        unfinished: last_line(info),
        max_lines: query.limit.unwrap_or(u64::MAX),
        ..LineQuery::default()
    };
    let budget = query.budget();
    let show = move |rows| whole(Material::whole(rows), budget);
    let page = page(journal, info, lines, budget.chars, show).await?;
    let more = (page.left > 0).then_some(page.next);
    Ok(Shown {
        text: page.blocks.join("\n"),
        next: page.next,
        left_out: more,
        omitted: more.map(|cursor| json!({"cursor": cursor, "lines": page.left})),
        notes: notes(info, journal, &page.rows)?,
    })
}

/// How it stands, and how to go on.
fn footer(info: &Info, next: Cursor, left_out: Option<Cursor>) -> String {
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
