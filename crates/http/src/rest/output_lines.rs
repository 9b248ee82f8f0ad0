//! Output by line number, for viewers of logs: pages, searches, failures, lines in slices of time.
//!
//! Each request does a bounded amount of work, and says where the next one continues.

use axum::Json;
use axum::extract::State;
use ostler_api::{
    FailureLineBody, FailureLinesBody, LineMatchPartBody, LineSearchBody, NumberedLineBody,
    NumberedPageBody, OutputShapeBody, ShapeBucketBody,
};
use ostler_engine::{ExecutionInfo, lost_tail, plain_text};
use ostler_interface::convert::gap_body;
use ostler_interface::error::bad_pattern;
use ostler_interface::http::HttpProblem;
use ostler_interface::output_reader::{encoding, run_read};
use ostler_interface::params::{Arguments, Parameter, ParameterKind};
use ostler_interface::past_time::past_time;
use ostler_journal::{
    Encoding, Gap, Journal, LinePosition, LineQuery, LineSearch, NumberedLine, NumberedPage,
    NumberedQuery, OpenLineMode, Pattern, ReadError, SearchedLines,
};
use ostler_render::failure_lines::classify;
use ostler_render::{to_rows, truncated, with_pattern_encoding};

use super::caller::RequestCaller;
use super::extract::ExecutionPathId;
use super::output::{decode_line, line_body};
use super::query::{QueryString, STREAM, stream_set};
use super::response::RestResult;
use super::state::RestState;

/// Lines of a page by default.
const LINES: i64 = 256;
/// The most lines of a page.
const LINES_LIMIT: i64 = 10_000;
/// The most bytes of a page.
const PAGE_BYTES: u64 = 4 * 1024 * 1024;
/// The most bytes of one line in a page.
const LINE_BYTES: u64 = 64 * 1024;
/// Matches of a page by default.
const MATCHES: i64 = 100;
/// The most matches of a page.
const MATCHES_LIMIT: i64 = 1_000;
/// The most bytes of one line with a match.
const MATCH_BYTES: u64 = 512;
/// The bytes that one search reads.
const SEARCH_BYTES: u64 = 32 * 1024 * 1024;
/// The bytes of a line that are looked at for a failure.
const FAILURE_LINE_BYTES: u64 = 1024;
/// The lines that are looked at for failures in one step.
const FAILURE_STEP_LINES: u64 = 4096;
/// The newest bytes of output whose failures a shape counts.
const SHAPE_FAILURE_BYTES: u64 = 2 * 1024 * 1024;
/// The most characters of a failure that are returned.
const FAILURE_CHARS: usize = 512;
/// Slices of time by default.
const BUCKETS: i64 = 150;
/// The most slices of time.
const BUCKETS_LIMIT: i64 = 1_000;

const LINE: ParameterKind = ParameterKind::Integer(1, i64::MAX);

const PAGE: &[Parameter] = &[
    Parameter::optional(
        "line",
        LINE,
        "The number of the first line; by default the oldest kept",
    ),
    Parameter::optional(
        "at",
        ParameterKind::Text,
        "Instead of line: from the first one that ended then or later, a time or how long ago",
    ),
    Parameter::optional(
        "last",
        ParameterKind::Integer(0, LINES_LIMIT),
        "Instead of line: the last n lines",
    ),
    Parameter::optional(
        "count",
        ParameterKind::Integer(1, LINES_LIMIT),
        "At most so many lines",
    )
    .with_default(LINES),
    STREAM,
];

const DIRECTION: Parameter = Parameter::optional(
    "dir",
    ParameterKind::Choice(&["next", "previous"]),
    "From that line to later ones, or to earlier ones",
)
.with_default_text("next");
const FROM: Parameter = Parameter::optional(
    "from",
    LINE,
    "The number of the line to begin with; by default the first in that direction",
);
const LIMIT: Parameter = Parameter::optional(
    "limit",
    ParameterKind::Integer(1, MATCHES_LIMIT),
    "At most so many",
)
.with_default(MATCHES);

const FIND: &[Parameter] = &[
    Parameter::required("q", ParameterKind::Text, "What to search"),
    Parameter::optional(
        "mode",
        ParameterKind::Choice(&["text", "word", "regex"]),
        "Whether q is a text, a whole word, or a Perl-style expression",
    )
    .with_default_text("text"),
    Parameter::optional(
        "ignore_case",
        ParameterKind::Flag,
        "Take upper and lower case as one",
    )
    .with_default_flag(false),
    Parameter::optional(
        "count_only",
        ParameterKind::Flag,
        "Count matching lines from there on, and list none",
    )
    .with_default_flag(false),
    FROM,
    DIRECTION,
    LIMIT,
    STREAM,
];

const FAILURES: &[Parameter] = &[FROM, DIRECTION, LIMIT];

const SHAPE: &[Parameter] = &[Parameter::optional(
    "buckets",
    ParameterKind::Integer(1, BUCKETS_LIMIT),
    "In how many slices of time",
)
.with_default(BUCKETS)];

/// `GET /api/v1/executions/{id}/output/lines`: lines from a number, a time or the end.
pub(super) async fn lines(
    State(state): State<RestState>,
    RequestCaller(caller): RequestCaller,
    ExecutionPathId(id): ExecutionPathId,
    query_string: QueryString,
) -> RestResult<Json<NumberedPageBody>> {
    let mut arguments = query_string.check(PAGE)?;
    let query = NumberedQuery {
        streams: stream_set(&mut arguments)?,
        max_lines: arguments.count("count").unwrap_or_default(),
        max_bytes: PAGE_BYTES,
        max_line_bytes: LINE_BYTES,
        ..NumberedQuery::starting_at(position(&mut arguments)?)
    };
    let info = state.engine.info(&caller, &id)?;
    let journal = state.engine.journal(&caller, &id)?;
    let read = move |journal: &Journal| journal.numbered_lines(&query);
    let page = run_read(&journal, &info, read).await?;
    // What was dropped before the page was read is on record by now.
    let info = state.engine.info(&caller, &id)?;
    let gap = |gap: Gap| gap_body(&info, gap);
    let gap_after = match page.more {
        true => None,
        false => lost_tail(&info, &journal)?.map(gap),
    };
    let encoding = encoding(&info);
    let lines = page.lines.into_iter().map(|one| NumberedLineBody {
        line: one.number,
        content: line_body(one.line, encoding),
    });
    Ok(Json(NumberedPageBody {
        first_line: page.first_kept,
        ended_lines: page.ended,
        lines: lines.collect(),
        gaps: page.gaps.into_iter().map(gap).collect(),
        gap_after,
        damaged_from: page.damaged,
        next_line: page.next,
        more: page.more,
        finished: info.state.is_finished(),
    }))
}

fn position(arguments: &mut Arguments) -> RestResult<LinePosition> {
    let (line, last) = (arguments.count("line"), arguments.count("last"));
    match (line, arguments.text("at"), last) {
        (None, None, None) => Ok(LinePosition::Number(1)),
        (Some(line), None, None) => Ok(LinePosition::Number(line)),
        (None, Some(at), None) => Ok(LinePosition::Time(past_time("at", &at)?)),
        (None, None, Some(last)) => Ok(LinePosition::Last(last)),
        _ => Err(HttpProblem::value(
            "more than one of the parameters 'line', 'at' and 'last'; allowed: one of them",
        )),
    }
}

/// `GET /api/v1/executions/{id}/output/find`: lines with a match, in one part of the output.
pub(super) async fn find(
    State(state): State<RestState>,
    RequestCaller(caller): RequestCaller,
    ExecutionPathId(id): ExecutionPathId,
    query_string: QueryString,
) -> RestResult<Json<LineSearchBody>> {
    let mut arguments = query_string.check(FIND)?;
    let pattern = pattern(&mut arguments)?;
    let limit = arguments.count("limit").unwrap_or_default();
    let is_forward = arguments.text("dir").as_deref() == Some("next");
    let lines = match (arguments.flag("count_only"), is_forward) {
        (true, true) => SearchedLines::Count,
        (true, false) => {
            return Err(HttpProblem::value(
                "parameter 'count_only' with dir=previous; allowed: dir=next",
            ));
        }
        (false, true) => SearchedLines::First(limit),
        (false, false) => SearchedLines::Last(limit),
    };
    let from = arguments.count("from");
    let search = LineSearch {
        pattern,
        from: from.unwrap_or(if is_forward { 1 } else { u64::MAX }),
        lines,
        streams: stream_set(&mut arguments)?,
        max_bytes: SEARCH_BYTES,
        max_line_bytes: MATCH_BYTES,
    };
    let info = state.engine.info(&caller, &id)?;
    let journal = state.engine.journal(&caller, &id)?;
    let encoding = encoding(&info);
    let read = move |journal: &Journal| {
        let query = LineQuery {
            grep: Some(search.pattern.clone()),
            ..LineQuery::default()
        };
        let pattern = with_pattern_encoding(journal, &query, encoding)?.grep;
        let pattern = pattern.unwrap_or_else(|| search.pattern.clone());
        journal.search_lines(&LineSearch { pattern, ..search })
    };
    let page = run_read(&journal, &info, read).await?;
    let matches = page.matches.into_iter();
    Ok(Json(LineSearchBody {
        first_line: page.first_kept,
        ended_lines: page.ended,
        matches: matches.map(|one| match_body(one, encoding)).collect(),
        count: page.count,
        next_line: page.next,
        damaged_from: page.damaged,
        searched_bytes: page.searched_bytes,
    }))
}

fn pattern(arguments: &mut Arguments) -> RestResult<Pattern> {
    let given = arguments.text("q").unwrap_or_default();
    if given.is_empty() {
        return Err(HttpProblem::value(
            "parameter 'q' is empty; allowed: what to search",
        ));
    }
    let ignore_case = arguments.flag("ignore_case");
    let pattern = match arguments.text("mode").as_deref() {
        Some("regex") if ignore_case => Pattern::new(&format!("(?i){given}")),
        Some("regex") => Pattern::new(&given),
        mode => Pattern::literal(&given, mode == Some("word"), ignore_case),
    };
    let pattern = pattern.map_err(|error| bad_pattern("q", &given, &error))?;
    Ok(pattern.with_plain_text(plain_text))
}

fn match_body(found: NumberedLine, encoding: Option<Encoding>) -> LineMatchPartBody {
    let NumberedLine { number, line } = found;
    LineMatchPartBody {
        line: number,
        at: line.at,
        stream: line.stream,
        text: decode_line(&line.bytes, encoding.unwrap_or(Encoding::UTF_8)),
        skipped_bytes: line.skipped,
        clipped_bytes: line.clipped,
    }
}

/// `GET /api/v1/executions/{id}/output/failures`: lines that state a failure, in one part of the
/// output.
pub(super) async fn failures(
    State(state): State<RestState>,
    RequestCaller(caller): RequestCaller,
    ExecutionPathId(id): ExecutionPathId,
    query_string: QueryString,
) -> RestResult<Json<FailureLinesBody>> {
    let mut arguments = query_string.check(FAILURES)?;
    let limit = arguments.count("limit").unwrap_or_default();
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let from = arguments.count("from");
    let is_forward = arguments.text("dir").as_deref() == Some("next");
    let info = state.engine.info(&caller, &id)?;
    let journal = state.engine.journal(&caller, &id)?;
    let encoding = encoding(&info);
    let read = move |journal: &Journal| match is_forward {
        true => next_failures(journal, encoding, from.unwrap_or(1), limit),
        false => previous_failures(journal, encoding, from, limit),
    };
    Ok(Json(run_read(&journal, &info, read).await?))
}

fn next_failures(
    journal: &Journal,
    encoding: Option<Encoding>,
    from: u64,
    limit: usize,
) -> Result<FailureLinesBody, ReadError> {
    let page = journal.numbered_lines(&failure_query(LinePosition::Number(from)))?;
    let mut body = empty_body(&page);
    body.next_line = page.more.then_some(page.next);
    for one in &page.lines {
        if body.failures.len() == limit {
            body.next_line = Some(one.number);
            break;
        }
        body.failures.extend(failure(one, encoding));
    }
    Ok(body)
}

fn previous_failures(
    journal: &Journal,
    encoding: Option<Encoding>,
    from: Option<u64>,
    limit: usize,
) -> Result<FailureLinesBody, ReadError> {
    let first = match from {
        Some(from) => LinePosition::Number((from + 1).saturating_sub(FAILURE_STEP_LINES).max(1)),
        None => LinePosition::Last(FAILURE_STEP_LINES),
    };
    let mut page = journal.numbered_lines(&failure_query(first))?;
    page.lines
        .retain(|one| from.is_none_or(|from| one.number <= from));
    let mut body = empty_body(&page);
    let first = page.lines.first().map(|one| one.number);
    body.next_line = first
        .map(|first| first.min(from.unwrap_or(u64::MAX)).saturating_sub(1))
        .filter(|next| *next >= page.first_kept);
    for one in page.lines.iter().rev() {
        if body.failures.len() == limit {
            body.next_line = Some(one.number);
            break;
        }
        body.failures.extend(failure(one, encoding));
    }
    body.failures.reverse();
    Ok(body)
}

const fn failure_query(from: LinePosition) -> NumberedQuery {
    NumberedQuery {
        max_lines: FAILURE_STEP_LINES,
        max_bytes: FAILURE_STEP_LINES * FAILURE_LINE_BYTES,
        max_line_bytes: FAILURE_LINE_BYTES,
        ..NumberedQuery::starting_at(from)
    }
}

const fn empty_body(page: &NumberedPage) -> FailureLinesBody {
    FailureLinesBody {
        first_line: page.first_kept,
        ended_lines: page.ended,
        failures: Vec::new(),
        next_line: None,
    }
}

fn failure(one: &NumberedLine, encoding: Option<Encoding>) -> Option<FailureLineBody> {
    let line = std::slice::from_ref(&one.line);
    let row = to_rows(line, encoding, OpenLineMode::Preview).pop()?;
    let found = classify(&row.text)?;
    Some(FailureLineBody {
        line: one.number,
        at: one.line.at,
        stream: one.line.stream,
        text: truncated(&row.text, FAILURE_CHARS).to_string(),
        weight: found.weight,
    })
}

/// `GET /api/v1/executions/{id}/output/shape`: how many lines were printed when.
pub(super) async fn shape(
    State(state): State<RestState>,
    RequestCaller(caller): RequestCaller,
    ExecutionPathId(id): ExecutionPathId,
    query_string: QueryString,
) -> RestResult<Json<OutputShapeBody>> {
    let buckets = query_string.check(SHAPE)?.count("buckets");
    let buckets = usize::try_from(buckets.unwrap_or_default()).unwrap_or(usize::MAX);
    let info = state.engine.info(&caller, &id)?;
    let journal = state.engine.journal(&caller, &id)?;
    let subject = info.clone();
    let read = move |journal: &Journal| shape_body(journal, &subject, buckets);
    let body = run_read(&journal, &info, read).await?;
    Ok(Json(body))
}

fn shape_body(
    journal: &Journal,
    info: &ExecutionInfo,
    buckets: usize,
) -> Result<OutputShapeBody, ReadError> {
    let shape = journal.shape(buckets)?;
    let mut bodies: Vec<ShapeBucketBody> = shape
        .buckets
        .iter()
        .map(|bucket| ShapeBucketBody {
            lines: bucket.lines,
            stderr_lines: bucket.stderr_lines,
            failure_lines: 0,
        })
        .collect();
    let newest = journal.end()?.saturating_sub(SHAPE_FAILURE_BYTES);
    let mut from = LinePosition::Offset(newest);
    let mut failures_from_line = None;
    loop {
        let page = journal.numbered_lines(&failure_query(from))?;
        failures_from_line.get_or_insert(page.lines.first().map_or(page.next, |one| one.number));
        for one in &page.lines {
            let failure = failure(one, encoding(info));
            let bucket = shape.bucket_at(one.line.at).filter(|_| failure.is_some());
            if let Some(bucket) = bucket.and_then(|place| bodies.get_mut(place)) {
                bucket.failure_lines += 1;
            }
        }
        if !page.more || page.next > shape.ended {
            break;
        }
        from = LinePosition::Number(page.next);
    }
    let (from, to) = shape.times.unzip();
    Ok(OutputShapeBody {
        first_line: shape.first_kept,
        ended_lines: shape.ended,
        bytes: shape.bytes,
        from,
        to,
        buckets: bodies,
        failures_from_line: failures_from_line.unwrap_or(1),
    })
}
