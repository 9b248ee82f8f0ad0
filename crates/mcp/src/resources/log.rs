//! `proc://{id}/log`: clean text within the budget of a reply, with the omissions counted and the
//! position to continue from.

use ostler_engine::ExecutionInfo;
use ostler_journal::{Journal, LineQuery};
use ostler_model::Cursor;
use ostler_render::{ExcerptInput, excerpt};
use serde_json::{Value, json};

use super::log_query::LogResourceQuery;
use super::uri::log_from;
use crate::output::{omitted_fields, output_notes, render_whole};
use ostler_interface::error::ApiError;
use ostler_interface::output_reader::read_page;
use ostler_interface::output_reader::{read_slice, unfinished_mode};

/// The selected part of the output, as text.
pub(super) struct LogText {
    pub(super) text: String,
    pub(super) fields: Value,
}

/// Reads the selected part.
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
    for note in page.notes.iter().chain(info.state.degradations()) {
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
