//! Output of one execution as pages of lines.

use axum::Json;
use axum::extract::State;
use ostler_api::{ClearOutputResponse, LineBody, OutputPageBody};
use ostler_engine::{damaged_output, lost_tail};
use ostler_journal::{Decoder, Encoding, JournalLine, LineQuery};
use ostler_model::ByteString;
use ostler_render::with_pattern_encoding;

use super::caller::RequestCaller;
use super::extract::{ExecutionPathId, NoBody};
use super::query::{
    CURSOR, GREP, GREP_MODE, HEAD, QueryString, SINCE, STREAM, TAIL, UNTIL, conditions, cursor,
    grep_mode, stream_set,
};
use super::response::RestResult;
use super::state::RestState;
use ostler_interface::convert::gap_body;
use ostler_interface::cursor_argument::{CURSOR_PARAMETER, SINCE_PARAMETER, check_cursor};
use ostler_interface::output_reader::{encoding, run_read, unfinished_mode};
use ostler_interface::params::{Parameter, ParameterKind};

/// Lines of a page by default.
const PAGE_LINES: i64 = 1_000;
/// The most lines of a page.
const PAGE_LINES_LIMIT: i64 = 100_000;
/// The most bytes of a page.
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
        ParameterKind::Integer(1, PAGE_LINES_LIMIT),
        "Lines in the page",
    )
    .with_default(PAGE_LINES),
];

/// `GET /api/v1/executions/{id}/output`: lines of output from a cursor or a time on.
pub(super) async fn lines(
    State(state): State<RestState>,
    RequestCaller(caller): RequestCaller,
    ExecutionPathId(id): ExecutionPathId,
    query_string: QueryString,
) -> RestResult<Json<OutputPageBody>> {
    let mut arguments = query_string.check(LINES)?;
    let conditions = conditions(&mut arguments)?;
    let cursor = cursor(&mut arguments)?;
    let info = state.engine.info(&caller, &id)?;
    check_cursor(&info, CURSOR_PARAMETER, cursor)?;
    check_cursor(&info, SINCE_PARAMETER, conditions.from)?;
    let query = LineQuery {
        from: cursor.or(conditions.from),
        streams: stream_set(&mut arguments)?,
        grep_mode: grep_mode(&mut arguments),
        head: arguments.count("head"),
        max_lines: arguments.count("limit").unwrap_or_default(),
        max_bytes: PAGE_BYTES,
        unfinished: unfinished_mode(&info),
        ..conditions
    };
    let journal = state.engine.journal(&caller, &id)?;
    let encoding = encoding(&info);
    let is_unbounded_end =
        query.head.is_none() && query.until.is_none() && query.until_cursor.is_none();
    let read_page = move |journal: &ostler_journal::Journal| {
        journal.lines(&with_pattern_encoding(journal, &query, encoding)?)
    };
    let page = run_read(&journal, &info, read_page).await?;
    // What was dropped before the page was read is on record by now.
    let info = state.engine.info(&caller, &id)?;
    let gap_after = match page.damaged {
        Some(from) => Some(damaged_output(&info, &journal, from)?),
        None if page.more || !is_unbounded_end => None,
        None => lost_tail(&info, &journal)?,
    };
    Ok(Json(OutputPageBody {
        lines: page
            .lines
            .into_iter()
            .map(|line| line_body(line, encoding))
            .collect(),
        next: page.next,
        gap: page.gap.map(|gap| gap_body(&info, gap)),
        gap_after: gap_after.map(|gap| gap_body(&info, gap)),
        damaged_from: page.damaged,
        more: page.more,
        omitted_lines: page.omitted_lines,
    }))
}

/// A line as it is returned.
pub(super) fn line_body(line: JournalLine, encoding: Option<Encoding>) -> LineBody {
    let text = match encoding {
        None => ByteString::from(line.bytes),
        Some(encoding) => ByteString::from(decode_line(&line.bytes, encoding)),
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

/// Decodes one line alone; `rest::processes` decodes whole streams where that matters.
pub(super) fn decode_line(bytes: &[u8], encoding: Encoding) -> String {
    let mut decoder = Decoder::new(encoding);
    let mut text = decoder.push(bytes);
    text.push_str(&decoder.finish());
    text
}

/// `DELETE /api/v1/executions/{id}/output` and `DELETE /api/process/{id}/output`: drops the output
/// that is kept.
pub(super) async fn clear(
    State(state): State<RestState>,
    RequestCaller(caller): RequestCaller,
    ExecutionPathId(id): ExecutionPathId,
    query_string: QueryString,
    _: NoBody,
) -> RestResult<Json<ClearOutputResponse>> {
    query_string.check(&[])?;
    let dropped_bytes = state.engine.clear_output(&caller, &id).await?;
    Ok(Json(ClearOutputResponse { dropped_bytes }))
}
