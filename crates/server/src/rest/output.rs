//! Output of one execution as pages of lines.

use axum::Json;
use axum::extract::State;
use ostler_engine::lost_tail;
use ostler_journal::{Decoder, Encoding, Gap, Line, LineQuery};
use ostler_model::Text;

use super::answer::Answer;
use super::caller::Asking;
use super::extract::Execution;
use super::query::{
    Asked, CURSOR, GREP, GREP_MODE, HEAD, SINCE, STREAM, TAIL, UNTIL, conditions, cursor,
    grep_mode, streams,
};
use super::state::RestState;
use crate::params::{Kind, Parameter};
use crate::reading::{apart, encoding, last_line, on_text};
use crate::wire::{DroppedBody, GapBody, LineBody, PageBody};

/// Lines a page holds unless it is asked for another number.
const PAGE_LINES: i64 = 1_000;
/// Lines a page can be asked to hold.
const PAGE_LINES_LIMIT: i64 = 100_000;
/// Bytes a page holds at most.
const PAGE_BYTES: u64 = 8 * 1024 * 1024;

const LINES: &[Parameter] = &[
    CURSOR,
    SINCE,
    UNTIL,
    TAIL,
    HEAD,
    GREP,
    GREP_MODE,
    STREAM,
    Parameter::optional(
        "limit",
        Kind::Integer(1, PAGE_LINES_LIMIT),
        "Lines in the page",
    )
    .or(PAGE_LINES),
];

/// `GET /api/v1/executions/{id}/output`.
pub(super) async fn lines(
    State(state): State<RestState>,
    Asking(caller): Asking,
    Execution(id): Execution,
    asked: Asked,
) -> Answer<Json<PageBody>> {
    let mut arguments = asked.check(LINES)?;
    let conditions = conditions(&mut arguments)?;
    let from = cursor(&mut arguments)?.or(conditions.from);
    let info = state.engine.info(&caller, &id)?;
    let query = LineQuery {
        from,
        streams: streams(&mut arguments)?,
        grep_mode: grep_mode(&mut arguments),
        head: arguments.count("head"),
        max_lines: arguments.count("limit").unwrap_or_default(),
        max_bytes: PAGE_BYTES,
        unfinished: last_line(&info),
        ..conditions
    };
    let journal = state.engine.journal(&caller, &id)?;
    let encoding = encoding(&info);
    let to_the_end = query.head.is_none() && query.until.is_none() && query.until_cursor.is_none();
    let read = move |journal: &ostler_journal::Journal| {
        journal.lines(&on_text(journal, &query, encoding)?)
    };
    let page = apart(&journal, &info, read).await?;
    let gap = |gap: Gap| GapBody::of(&info.state, gap.from, gap.to);
    let gap_after = if page.more || !to_the_end {
        None
    } else {
        lost_tail(&info, &journal)?.map(gap)
    };
    Ok(Json(PageBody {
        lines: page
            .lines
            .into_iter()
            .map(|line| body(line, encoding))
            .collect(),
        next: page.next,
        gap: page.gap.map(gap),
        gap_after,
        more: page.more,
        omitted_lines: page.omitted_lines,
    }))
}

fn body(line: Line, encoding: Option<Encoding>) -> LineBody {
    let text = match encoding {
        None => Text::from(line.bytes),
        Some(encoding) => Text::from(decoded(&line.bytes, encoding)),
    };
    LineBody {
        at: line.at,
        stream: line.stream,
        number: line.number,
        offset: line.offset,
        text,
        terminated: line.terminated,
        clipped_bytes: line.clipped,
    }
}

/// One line by itself; `rest::processes` decodes whole streams where that matters.
fn decoded(bytes: &[u8], encoding: Encoding) -> String {
    let mut decoder = Decoder::new(encoding);
    let mut text = decoder.push(bytes);
    text.push_str(&decoder.finish());
    text
}

/// `DELETE /api/v1/executions/{id}/output` and `DELETE /api/process/{id}/output`.
pub(super) async fn clear(
    State(state): State<RestState>,
    Asking(caller): Asking,
    Execution(id): Execution,
    asked: Asked,
) -> Answer<Json<DroppedBody>> {
    asked.check(&[])?;
    let dropped_bytes = state.engine.clear_output(&caller, &id).await?;
    Ok(Json(DroppedBody { dropped_bytes }))
}
