//! The process routes, `/api/processes` and `/api/process/…`.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::response::IntoResponse;
use ostler_api::{
    CleanAllResponse, CleanFailure, CleanResponse, CleanSelected, CleanSelectedResponse,
    OutputEntry, PidEntry, ProcessBody, ProcessOutputBody, StopBody,
};
use ostler_engine::{CleanOutcome, ListFilter, StopRequest, damaged_output, lost_bytes};
use ostler_journal::{Gap, Journal, JournalLine, LineQuery, ReadError, StreamSet};
use ostler_model::StreamName;
use ostler_model::status::ProcessStatus;
use ostler_render::with_pattern_encoding;
use ostler_render::{OutputRow, to_rows};

use super::caller::RequestCaller;
use super::executions::clean_one;
use super::extract::{ExecutionPathId, JsonBody, NoBody};
use super::query::{
    GREP, LIST_CURSOR, LIST_LIMIT, QueryString, SINCE, TAIL, UNTIL, conditions, list_page,
};
use super::response::RestResult;
use super::state::RestState;
use ostler_interface::convert::process_body;
use ostler_interface::cursor_argument::{SINCE_PARAMETER, check_cursor};
use ostler_interface::output_reader::{encoding, run_read, unfinished_mode};
use ostler_interface::pagination::newest_first;
use ostler_interface::params::{Parameter, ParameterKind};

/// The most lines of one stream in a response.
const OUTPUT_LINES: u64 = 100_000;
/// The most bytes of one stream in a response.
const OUTPUT_BYTES: u64 = 8 * 1024 * 1024;

const LIST: &[Parameter] = &[
    Parameter::optional(
        "status",
        ParameterKind::Choice(&["running", "completed", "failed", "terminated", "error"]),
        "Only those with this status",
    ),
    Parameter::optional(
        "labels",
        ParameterKind::List,
        "Only those with all of these labels",
    ),
    LIST_LIMIT,
    LIST_CURSOR,
];

/// The header with the total number of processes.
const TOTAL: HeaderName = HeaderName::from_static("x-total-count");

const OUTPUT: &[Parameter] = &[
    TAIL,
    SINCE,
    UNTIL,
    GREP,
    Parameter::optional("with_stdout", ParameterKind::Flag, "Standard output")
        .with_default_flag(true),
    Parameter::optional("with_stderr", ParameterKind::Flag, "Standard error")
        .with_default_flag(false),
];

/// `GET /api/processes`: processes, newest first. The total and the next page are in the headers
/// `X-Total-Count` and `Link`.
pub(super) async fn list(
    State(state): State<RestState>,
    RequestCaller(caller): RequestCaller,
    query_string: QueryString,
) -> RestResult<impl IntoResponse> {
    let mut arguments = query_string.check(LIST)?;
    let filter = ListFilter {
        status: arguments
            .text("status")
            .and_then(|word| ProcessStatus::parse(&word)),
        labels: arguments.list("labels"),
        limit: None,
    };
    let executions = state.engine.list(&caller, &filter);
    let page = list_page(&executions, newest_first, &mut arguments)?;
    let mut headers = HeaderMap::new();
    headers.insert(TOTAL, executions.len().into());
    let next = page.next.map(|next| query_string.link_to(&next));
    if let Some(link) = next.and_then(|link| HeaderValue::try_from(link).ok()) {
        headers.insert(header::LINK, link);
    }
    let processes: Vec<_> = page.entries.into_iter().map(process_body).collect();
    Ok((headers, Json(processes)))
}

/// `GET /api/process/{id}`: one process.
pub(super) async fn show(
    State(state): State<RestState>,
    RequestCaller(caller): RequestCaller,
    ExecutionPathId(id): ExecutionPathId,
    query_string: QueryString,
) -> RestResult<Json<ProcessBody>> {
    query_string.check(&[])?;
    let info = state.engine.info(&caller, &id)?;
    Ok(Json(process_body(&info)))
}

/// `GET /api/process/{id}/output`: output of a process, by stream.
pub(super) async fn output(
    State(state): State<RestState>,
    RequestCaller(caller): RequestCaller,
    ExecutionPathId(id): ExecutionPathId,
    query_string: QueryString,
) -> RestResult<Json<ProcessOutputBody>> {
    let mut arguments = query_string.check(OUTPUT)?;
    let (stdout, stderr) = (arguments.flag("with_stdout"), arguments.flag("with_stderr"));
    let info = state.engine.info(&caller, &id)?;
    let conditions = conditions(&mut arguments)?;
    check_cursor(&info, SINCE_PARAMETER, conditions.from)?;
    let base = LineQuery {
        unfinished: unfinished_mode(&info),
        max_lines: OUTPUT_LINES,
        max_bytes: OUTPUT_BYTES,
        count_omitted: false,
        ..conditions
    };
    let journal = state.engine.journal(&caller, &id)?;
    let encoding = encoding(&info);
    let read_output = move |journal: &ostler_journal::Journal| {
        let (mut damaged_from, mut gaps) = (None, Vec::new());
        let mut stream = |requested: bool, streams| -> Result<_, ReadError> {
            let query = LineQuery {
                streams,
                ..with_pattern_encoding(journal, &base, encoding)?
            };
            if !requested {
                return Ok(Vec::new());
            }
            let (lines, damaged) = across_gaps(journal, &query, &mut gaps)?;
            damaged_from = damaged_from.into_iter().chain(damaged).min();
            Ok(output_entries(to_rows(&lines, encoding, query.unfinished)))
        };
        let output_streams = StreamSet::only(StreamName::Stdout).with(StreamName::Pty);
        let stdout = stream(stdout, output_streams)?;
        let stderr = stream(stderr, StreamSet::only(StreamName::Stderr))?;
        let body = ProcessOutputBody {
            stdout,
            stderr,
            lost_bytes: 0,
            damaged_from,
        };
        Ok((body, gaps))
    };
    let (mut body, gaps) = run_read(&journal, &info, read_output).await?;
    let newest_info = || state.engine.info(&caller, &id);
    let readable = 0..body.damaged_from.unwrap_or(u64::MAX);
    body.lost_bytes = lost_bytes(newest_info, &journal, readable, &gaps)?;
    if let Some(from) = body.damaged_from {
        let info = newest_info()?;
        let damaged = damaged_output(&info, &journal, from)?;
        body.lost_bytes += info.lost_bytes(damaged.from, damaged.to);
    }
    Ok(Json(body))
}

/// The lines of a response. A page ends at a gap in the output, so the pages after it are read too;
/// the gaps are added to `gaps`. Also where the files are damaged to the end.
fn across_gaps(
    journal: &Journal,
    query: &LineQuery,
    gaps: &mut Vec<Gap>,
) -> Result<(Vec<JournalLine>, Option<u64>), ReadError> {
    let (mut query, mut lines) = (query.clone(), Vec::new());
    loop {
        let page = journal.lines(&query)?;
        let (count, bytes) = (
            page.lines.len() as u64,
            page.lines.iter().map(line_bytes).sum(),
        );
        lines.extend(page.lines);
        gaps.extend(page.gap);
        query.max_lines = query.max_lines.saturating_sub(count);
        query.max_bytes = query.max_bytes.saturating_sub(bytes);
        query.tail = query.tail.map(|tail| tail.saturating_sub(count));
        let advanced = query.from != Some(page.next);
        query.from = Some(page.next);
        if !page.more || !advanced || query.max_lines == 0 || query.max_bytes == 0 {
            return Ok((lines, page.damaged));
        }
    }
}

fn line_bytes(line: &JournalLine) -> u64 {
    line.bytes.len() as u64
}

fn output_entries(rows: Vec<OutputRow>) -> Vec<OutputEntry> {
    let entry = |row: OutputRow| OutputEntry {
        timestamp: row.at,
        text: row.text,
    };
    rows.into_iter().map(entry).collect()
}

/// `POST /api/process/{id}/stop`: stops a process.
pub(super) async fn stop(
    State(state): State<RestState>,
    RequestCaller(caller): RequestCaller,
    ExecutionPathId(id): ExecutionPathId,
    JsonBody(body): JsonBody<StopBody>,
) -> RestResult<Json<ProcessBody>> {
    let request = StopRequest {
        force: body.force,
        grace: body.grace_ms.map(std::time::Duration::from_millis),
        reason: body.reason,
    };
    let info = state.engine.stop(&caller, &id, request).await?;
    Ok(Json(process_body(&info)))
}

/// `POST /api/process/{id}/clean`: removes a process that has ended.
pub(super) async fn clean(
    State(state): State<RestState>,
    RequestCaller(caller): RequestCaller,
    ExecutionPathId(id): ExecutionPathId,
    query_string: QueryString,
    _: NoBody,
) -> RestResult<Json<CleanResponse>> {
    query_string.check(&[])?;
    let discarded_changes = clean_one(&state, &caller, id.clone()).await?;
    Ok(Json(CleanResponse {
        pid: id,
        result: "success".to_owned(),
        discarded_changes,
    }))
}

/// `POST /api/process/clean_all`: removes all processes that have ended.
pub(super) async fn clean_all(
    State(state): State<RestState>,
    RequestCaller(caller): RequestCaller,
    query_string: QueryString,
    _: NoBody,
) -> RestResult<Json<CleanAllResponse>> {
    query_string.check(&[])?;
    let executions = state.engine.list(&caller, &ListFilter::default());
    let finished = executions.iter().filter(|info| info.state.is_finished());
    let pids: Vec<String> = finished.map(|info| info.id.short()).collect();
    if pids.is_empty() {
        return Ok(Json(CleanAllResponse {
            count: 0,
            failed: Vec::new(),
            discarded_changes: Vec::new(),
        }));
    }
    let response = clean_response(state.engine.clean(&caller, &pids).await?);
    Ok(Json(CleanAllResponse {
        count: response.success.len() as u64,
        failed: response.failed,
        discarded_changes: response.discarded_changes,
    }))
}

/// `POST /api/process/clean_selected`: removes those of these processes that have ended.
pub(super) async fn clean_selected(
    State(state): State<RestState>,
    RequestCaller(caller): RequestCaller,
    JsonBody(body): JsonBody<CleanSelected>,
) -> RestResult<Json<CleanSelectedResponse>> {
    let outcomes = state.engine.clean(&caller, &body.pids).await?;
    Ok(Json(clean_response(outcomes)))
}

fn clean_response(outcomes: Vec<(String, CleanOutcome)>) -> CleanSelectedResponse {
    let mut response = CleanSelectedResponse::default();
    for (pid, outcome) in outcomes {
        match outcome {
            CleanOutcome::Cleaned => response.success.push(PidEntry { pid }),
            CleanOutcome::Discarded => {
                response
                    .discarded_changes
                    .push(PidEntry { pid: pid.clone() });
                response.success.push(PidEntry { pid });
            }
            CleanOutcome::Running => response.running.push(PidEntry { pid }),
            CleanOutcome::NotFound => response.not_found.push(PidEntry { pid }),
            CleanOutcome::Failed(reason) => response.failed.push(CleanFailure { pid, reason }),
        }
    }
    response
}
