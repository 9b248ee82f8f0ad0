//! `cargo nextest run`.

use std::time::Duration;

use super::cargo_test::is_heading;
use super::durations::parse_duration;
use crate::failure_text::FailureText;
use crate::output_line::PlainLine;
use crate::report_builder::{ReportBuilder, TestId};
use crate::test_result::{TestAttempt, TestOutcome, TestRunner};

/// Parses its output.
#[derive(Debug, Default)]
pub(super) struct NextestParser {
    phase: Phase,
    /// The test whose output is being printed, and that.
    failed: Option<FailedTest>,
    text: FailureText,
}

/// The part of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Phase {
    /// Output of other programs.
    #[default]
    Outside,
    /// Results as they come.
    Running,
    /// What follows the summary: results again, and the output of failed tests where that is
    /// printed at the end.
    Finished,
}

#[derive(Debug)]
struct FailedTest {
    suite: String,
    name: String,
}

impl NextestParser {
    /// Whether the output of a run is being read.
    pub(super) fn is_active(&self) -> bool {
        self.phase != Phase::Outside
    }

    pub(super) fn line(&mut self, line: &PlainLine<'_>, report: &mut ReportBuilder) {
        let text = line.text.trim_start();
        if text.starts_with("Nextest run ID ") || is_start(text) {
            self.explain(report);
            self.phase = Phase::Running;
        } else if self.phase == Phase::Outside {
            // Output of other programs.
        } else if text.starts_with("Summary [") {
            self.explain(report);
            self.phase = Phase::Finished;
        } else if self.phase == Phase::Finished && is_heading(line.text) {
            self.explain(report);
            self.phase = Phase::Outside;
        } else if let Some(result) = StatusLine::parse(line.text) {
            self.result(&result, line, report);
        } else if self.failed.is_some() {
            self.output_line(text);
        }
    }

    fn result(
        &mut self,
        result: &StatusLine<'_>,
        line: &PlainLine<'_>,
        report: &mut ReportBuilder,
    ) {
        self.explain(report);
        if result.outcome.is_failure() {
            self.failed = Some(FailedTest {
                suite: result.suite.to_owned(),
                name: result.name.to_owned(),
            });
        }
        if self.phase == Phase::Running {
            let attempt = TestAttempt {
                outcome: result.outcome,
                duration: result.duration,
                message: String::new(),
                details: String::new(),
                position: line.position,
            };
            report.add_attempt(id(result.suite, result.name), attempt);
        }
    }

    pub(super) fn finish(&mut self, report: &mut ReportBuilder) {
        self.explain(report);
    }

    fn output_line(&mut self, text: &str) {
        let is_heading = |stream: &str| {
            text.starts_with(stream) && text.ends_with(['─', '-'])
                || text.starts_with("--- ") && text.contains(&stream.to_uppercase())
        };
        // The panic is on stderr; what is on stdout names only the test.
        if is_heading("stderr") {
            self.text.clear();
        } else if text == "stack backtrace:" || text.starts_with("note: run with `RUST_BACKTRACE") {
            self.text.complete();
        } else if !is_heading("stdout") {
            self.text.push(text);
        }
    }

    /// Adds the output of a failed test to its result.
    fn explain(&mut self, report: &mut ReportBuilder) {
        if let Some(failed) = self.failed.take() {
            let message = self.text.first_line("thread '");
            report.explain(id(&failed.suite, &failed.name), message, self.text.text());
        }
        self.text.clear();
    }
}

fn id<'a>(suite: &'a str, name: &'a str) -> TestId<'a> {
    TestId {
        runner: TestRunner::Nextest,
        suite,
        scope: suite,
        name,
    }
}

/// `Starting 5 tests across 2 binaries`.
fn is_start(text: &str) -> bool {
    let mut words = text.split(' ');
    words.next() == Some("Starting")
        && words
            .next()
            .is_some_and(|number| number.parse::<u64>().is_ok())
        && matches!(words.next(), Some("test" | "tests"))
        && words.next() == Some("across")
}

/// `  TRY 2 PASS [   0.007s] (2/5) demo::basic tests::flaky`.
struct StatusLine<'a> {
    outcome: TestOutcome,
    duration: Option<Duration>,
    suite: &'a str,
    name: &'a str,
}

impl<'a> StatusLine<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let (status, rest) = text.strip_prefix("  ")?.split_once(" [")?;
        let (duration, rest) = rest.split_once("] ")?;
        let outcome = outcome(status.trim_start())?;
        let rest = match rest
            .strip_prefix('(')
            .and_then(|rest| rest.split_once(") "))
        {
            Some((_, rest)) => rest,
            None => rest,
        };
        let (suite, name) = rest.split_once(' ')?;
        Some(Self {
            outcome,
            duration: parse_duration(duration),
            suite,
            name,
        })
    }
}

/// The outcome that a status means; none for what is no result, such as `SLOW`.
fn outcome(status: &str) -> Option<TestOutcome> {
    let status = match status.strip_prefix("TRY ") {
        Some(attempt) => attempt.split_once(' ')?.1,
        None => status,
    };
    match status {
        "PASS" | "LEAK" => Some(TestOutcome::Passed),
        "FAIL" | "FAIL + LEAK" | "LEAK-FAIL" | "FL+LK" | "LKFAIL" => Some(TestOutcome::Failed),
        "TIMEOUT" | "TMT" | "ABORT" | "XFAIL" => Some(TestOutcome::Error),
        signal if signal.starts_with("SIG") => Some(TestOutcome::Error),
        "SKIP" => Some(TestOutcome::Skipped),
        _ => None,
    }
}
