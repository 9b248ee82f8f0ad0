//! What tools reported in the output of an execution.

use std::cmp::Reverse;
use std::io;

use axum::Json;
use axum::extract::State;
use ostler_api::report::{
    DiagnosticBody, DiagnosticCountsBody, OutputPositionBody, ReportBody, ReportTestBody,
    ReportTestCountsBody,
};
use ostler_engine::ExecutionInfo;
use ostler_export::{ExportError, ExportSubject, read_report};
use ostler_journal::Journal;
use ostler_model::{ErrorCode, EventRecord};
use ostler_report::{
    DiagnosticSeverity, OutputPosition, Report, TestAttempt, TestResult, ToolDiagnostic,
};

use super::caller::RequestCaller;
use super::extract::ExecutionPathId;
use super::query::QueryString;
use super::response::RestResult;
use super::state::RestState;
use ostler_interface::http::HttpProblem;
use ostler_interface::params::{Parameter, ParameterKind};

/// The most entries of each list.
const ENTRIES_LIMIT: i64 = 10_000;
/// Entries of each list by default.
const ENTRIES: i64 = 100;

const REPORT: &[Parameter] = &[Parameter::optional(
    "limit",
    ParameterKind::Integer(0, ENTRIES_LIMIT),
    "At most so many failed tests, and so many diagnostics",
)
.with_default(ENTRIES)];

/// `GET /api/v1/executions/{id}/report`: test results and diagnostics in the output of an
/// execution.
pub(super) async fn report(
    State(state): State<RestState>,
    RequestCaller(caller): RequestCaller,
    ExecutionPathId(id): ExecutionPathId,
    query_string: QueryString,
) -> RestResult<Json<ReportBody>> {
    let limit = query_string.check(REPORT)?.count("limit");
    let limit = usize::try_from(limit.unwrap_or_default()).unwrap_or(usize::MAX);
    let info = state.engine.info(&caller, &id)?;
    let journal = state.engine.journal(&caller, &id)?;
    let events = state.engine.events(&caller, &id)?;
    let read = move || report_body(&journal, &info, &events, limit);
    let body = tokio::task::spawn_blocking(read).await;
    let body = body.unwrap_or_else(|error| Err(io::Error::other(error).into()));
    let to_problem = |error: ExportError| {
        let message = format!("the output cannot be searched: {error}");
        HttpProblem::new(ErrorCode::OutputRetrieval, message, None)
    };
    Ok(Json(body.map_err(to_problem)?))
}

fn report_body(
    journal: &Journal,
    info: &ExecutionInfo,
    events: &[EventRecord],
    limit: usize,
) -> Result<ReportBody, ExportError> {
    let subject = ExportSubject {
        id: info.id,
        spec: Some(&info.spec),
        events,
    };
    let found = read_report(journal, &subject)?;
    let report = found.report;
    Ok(ReportBody {
        id: info.id.short(),
        finished: info.state.is_finished(),
        tests: test_counts(&report),
        failed_tests: failed_tests(&report, limit),
        diagnostic_counts: diagnostic_counts(&report),
        diagnostics: most_severe(&report, limit),
        missing_bytes: found.subject.missing_bytes,
    })
}

fn test_counts(report: &Report) -> ReportTestCountsBody {
    let counts = report.test_counts();
    ReportTestCountsBody {
        total: counts.tests,
        passed: counts.passed,
        failed: counts.failed,
        errors: counts.errors,
        skipped: counts.skipped,
        flaky: counts.flaky,
        omitted: report.omitted_tests,
    }
}

fn failed_tests(report: &Report, limit: usize) -> Vec<ReportTestBody> {
    let has_failed = |test: &&TestResult| test.outcome().is_failure();
    let failed = report.tests.iter().filter(has_failed);
    let flaky = report.tests.iter().filter(|test| test.is_flaky());
    failed.chain(flaky).take(limit).map(test_body).collect()
}

fn test_body(test: &TestResult) -> ReportTestBody {
    let has_failed = |attempt: &&TestAttempt| attempt.outcome.is_failure();
    let failure = test.attempts.iter().rev().find(has_failed);
    ReportTestBody {
        runner: test.runner.as_str().to_owned(),
        suite: test.suite.clone(),
        name: test.name.clone(),
        outcome: test.outcome().as_str().to_owned(),
        attempts: test.attempts.len() as u64,
        message: failure.map_or_else(String::new, |attempt| attempt.message.clone()),
        output: position_body(test.last().position),
    }
}

fn diagnostic_counts(report: &Report) -> DiagnosticCountsBody {
    DiagnosticCountsBody {
        errors: report.count(DiagnosticSeverity::Error),
        warnings: report.count(DiagnosticSeverity::Warning),
        notes: report.count(DiagnosticSeverity::Note),
        omitted: report.omitted_diagnostics,
    }
}

/// Those of the highest severity first, in the order in which they were printed.
fn most_severe(report: &Report, limit: usize) -> Vec<DiagnosticBody> {
    let mut diagnostics: Vec<&ToolDiagnostic> = report.diagnostics.iter().collect();
    diagnostics.sort_by_key(|diagnostic| Reverse(diagnostic.severity));
    diagnostics
        .into_iter()
        .take(limit)
        .map(diagnostic_body)
        .collect()
}

fn diagnostic_body(diagnostic: &ToolDiagnostic) -> DiagnosticBody {
    let location = diagnostic.location.as_ref();
    DiagnosticBody {
        tool: diagnostic.tool.as_str().to_owned(),
        severity: diagnostic.severity.as_str().to_owned(),
        rule: diagnostic.rule.clone(),
        message: diagnostic.message.clone(),
        file: location.map(|location| location.file.clone()),
        line: location.and_then(|location| location.line),
        column: location.and_then(|location| location.column),
        output: position_body(diagnostic.position),
    }
}

const fn position_body(position: OutputPosition) -> OutputPositionBody {
    OutputPositionBody {
        stream: position.stream,
        line: position.line,
        offset: position.offset,
    }
}
