//! A10: document 000's web interface.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::response::IntoResponse;
use ostler_engine::{CleanOutcome, ListFilter, StopRequest};
use ostler_journal::{Journal, Line, LineQuery, ReadError, StreamSet};
use ostler_model::StreamName;
use ostler_model::status::ProcessStatus;

use super::answer::Answer;
use super::caller::Asking;
use super::executions::clean_one;
use super::extract::{Body, Execution};
use super::query::{Asked, GREP, LIST_CURSOR, LIST_LIMIT, SINCE, TAIL, UNTIL, conditions, window};
use super::state::RestState;
use crate::params::{Kind, Parameter};
use crate::reading::{apart, encoding, last_line, on_text};
use crate::render::{Row, rows};
use crate::window::newest_first;
use crate::wire::{
    CleanAllBody, CleanBody, CleanSelected, CleanedBody, FailedEntry, InfoBody, OutputBody,
    OutputEntry, PidEntry, ProcessBody, StopBody,
};

/// Lines of one stream an answer holds at most.
const OUTPUT_LINES: u64 = 100_000;
/// Bytes of one stream an answer holds at most.
const OUTPUT_BYTES: u64 = 8 * 1024 * 1024;

const LIST: &[Parameter] = &[
    Parameter::optional(
        "status",
        Kind::Choice(&["running", "completed", "failed", "terminated", "error"]),
        "Only those with this status",
    ),
    Parameter::optional("labels", Kind::List, "Only those with all of these labels"),
    LIST_LIMIT,
    LIST_CURSOR,
];

/// How many processes there are in all.
const TOTAL: HeaderName = HeaderName::from_static("x-total-count");

const OUTPUT: &[Parameter] = &[
    TAIL,
    SINCE,
    UNTIL,
    GREP,
    Parameter::optional("with_stdout", Kind::Flag, "Standard output").or_flag(true),
    Parameter::optional("with_stderr", Kind::Flag, "Standard error").or_flag(false),
];

/// `GET /api/processes`: an array, newest first, as document 000 has it. How many there are and
/// where the next window begins stand in the headers `X-Total-Count` and `Link`.
pub(super) async fn list(
    State(state): State<RestState>,
    Asking(caller): Asking,
    asked: Asked,
) -> Answer<impl IntoResponse> {
    let mut arguments = asked.check(LIST)?;
    let filter = ListFilter {
        status: arguments
            .text("status")
            .and_then(|word| ProcessStatus::parse(&word)),
        labels: arguments.list("labels"),
        limit: None,
    };
    let found = state.engine.list(&caller, &filter);
    let page = window(&found, newest_first, &mut arguments)?;
    let mut headers = HeaderMap::new();
    headers.insert(TOTAL, found.len().into());
    let next = page.next.map(|next| asked.link_to(&next));
    if let Some(link) = next.and_then(|link| HeaderValue::try_from(link).ok()) {
        headers.insert(header::LINK, link);
    }
    let processes: Vec<_> = page.entries.into_iter().map(ProcessBody::from).collect();
    Ok((headers, Json(processes)))
}

/// `GET /api/process/{id}`.
pub(super) async fn show(
    State(state): State<RestState>,
    Asking(caller): Asking,
    Execution(id): Execution,
    asked: Asked,
) -> Answer<Json<ProcessBody>> {
    asked.check(&[])?;
    let info = state.engine.info(&caller, &id)?;
    Ok(Json(ProcessBody::from(&info)))
}

/// `GET /api/process/{id}/output`.
pub(super) async fn output(
    State(state): State<RestState>,
    Asking(caller): Asking,
    Execution(id): Execution,
    asked: Asked,
) -> Answer<Json<OutputBody>> {
    let mut arguments = asked.check(OUTPUT)?;
    let (stdout, stderr) = (arguments.flag("with_stdout"), arguments.flag("with_stderr"));
    let info = state.engine.info(&caller, &id)?;
    let base = LineQuery {
        unfinished: last_line(&info),
        max_lines: OUTPUT_LINES,
        max_bytes: OUTPUT_BYTES,
        count_omitted: false,
        ..conditions(&mut arguments)?
    };
    let journal = state.engine.journal(&caller, &id)?;
    let encoding = encoding(&info);
    let read = move |journal: &ostler_journal::Journal| {
        let stream = |wanted: bool, streams| -> Result<_, ReadError> {
            let query = LineQuery {
                streams,
                ..on_text(journal, &base, encoding)?
            };
            if !wanted {
                return Ok(Vec::new());
            }
            let lines = across_gaps(journal, &query)?;
            Ok(entries(rows(&lines, encoding, query.unfinished)))
        };
        let printed = StreamSet::only(StreamName::Stdout).with(StreamName::Pty);
        Ok(OutputBody {
            stdout: stream(stdout, printed)?,
            stderr: stream(stderr, StreamSet::only(StreamName::Stderr))?,
        })
    };
    Ok(Json(apart(&journal, &info, read).await?))
}

/// The lines of an answer. A page ends where output is gone: those behind are fetched too.
fn across_gaps(journal: &Journal, query: &LineQuery) -> Result<Vec<Line>, ReadError> {
    let (mut query, mut lines) = (query.clone(), Vec::new());
    loop {
        let page = journal.lines(&query)?;
        let (count, size) = (page.lines.len() as u64, page.lines.iter().map(size).sum());
        lines.extend(page.lines);
        query.max_lines = query.max_lines.saturating_sub(count);
        query.max_bytes = query.max_bytes.saturating_sub(size);
        query.tail = query.tail.map(|tail| tail.saturating_sub(count));
        let on = query.from != Some(page.next);
        query.from = Some(page.next);
        if !page.more || !on || query.max_lines == 0 || query.max_bytes == 0 {
            return Ok(lines);
        }
    }
}

fn size(line: &Line) -> u64 {
    line.bytes.len() as u64
}

fn entries(rows: Vec<Row>) -> Vec<OutputEntry> {
    let entry = |row: Row| OutputEntry {
        timestamp: row.at,
        text: row.text,
    };
    rows.into_iter().map(entry).collect()
}

/// `POST /api/process/{id}/stop`.
pub(super) async fn stop(
    State(state): State<RestState>,
    Asking(caller): Asking,
    Execution(id): Execution,
    Body(body): Body<StopBody>,
) -> Answer<Json<ProcessBody>> {
    let request = StopRequest {
        force: body.force,
        grace: body.grace_ms.map(std::time::Duration::from_millis),
        reason: body.reason,
    };
    let info = state.engine.stop(&caller, &id, request).await?;
    Ok(Json(ProcessBody::from(&info)))
}

/// `POST /api/process/{id}/clean`.
pub(super) async fn clean(
    State(state): State<RestState>,
    Asking(caller): Asking,
    Execution(id): Execution,
) -> Answer<Json<CleanBody>> {
    clean_one(&state, &caller, id.clone()).await?;
    Ok(Json(CleanBody {
        pid: id,
        result: "success".to_owned(),
    }))
}

/// `POST /api/process/clean_all`.
pub(super) async fn clean_all(
    State(state): State<RestState>,
    Asking(caller): Asking,
) -> Answer<Json<CleanAllBody>> {
    let found = state.engine.list(&caller, &ListFilter::default());
    let ended = found.iter().filter(|info| info.state.is_finished());
    let pids: Vec<String> = ended.map(|info| info.id.short()).collect();
    if pids.is_empty() {
        return Ok(Json(CleanAllBody {
            count: 0,
            failed: Vec::new(),
        }));
    }
    let cleaned = cleaned(state.engine.clean(&caller, &pids).await?);
    Ok(Json(CleanAllBody {
        count: cleaned.success.len() as u64,
        failed: cleaned.failed,
    }))
}

/// `POST /api/process/clean_selected`.
pub(super) async fn clean_selected(
    State(state): State<RestState>,
    Asking(caller): Asking,
    Body(body): Body<CleanSelected>,
) -> Answer<Json<CleanedBody>> {
    let outcomes = state.engine.clean(&caller, &body.pids).await?;
    Ok(Json(cleaned(outcomes)))
}

fn cleaned(outcomes: Vec<(String, CleanOutcome)>) -> CleanedBody {
    let mut body = CleanedBody::default();
    for (pid, outcome) in outcomes {
        match outcome {
            CleanOutcome::Cleaned | CleanOutcome::Discarded => body.success.push(PidEntry { pid }),
            CleanOutcome::Running => body.running.push(PidEntry { pid }),
            CleanOutcome::NotFound => body.not_found.push(PidEntry { pid }),
            CleanOutcome::Failed(reason) => body.failed.push(FailedEntry { pid, reason }),
        }
    }
    body
}

impl From<&ostler_engine::Info> for ProcessBody {
    fn from(info: &ostler_engine::Info) -> Self {
        Self {
            pid: info.id.short(),
            info: InfoBody::from(info),
        }
    }
}
