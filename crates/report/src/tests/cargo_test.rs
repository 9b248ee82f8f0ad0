//! The test harness of Rust, alone or under `cargo test`.

use super::durations::parse_duration;
use crate::failure_text::FailureText;
use crate::output_line::PlainLine;
use crate::report_builder::{ReportBuilder, TestId};
use crate::test_result::{TestAttempt, TestOutcome, TestRunner};

/// Parses its output.
#[derive(Debug, Default)]
pub(super) struct CargoTestParser {
    /// As Cargo announced the test program; empty where it did not.
    suite: String,
    /// The path of the test program, or a number where none was announced.
    scope: String,
    /// Test programs that were not announced.
    unnamed: u64,
    is_running: bool,
    /// The test whose output is being printed, and that.
    failed: String,
    text: FailureText,
}

impl CargoTestParser {
    pub(super) fn line(&mut self, line: &PlainLine<'_>, report: &mut ReportBuilder) {
        let text = line.text;
        if let Some(heading) = Heading::parse(text) {
            self.suite = heading.suite;
            self.scope = heading.scope;
            self.is_running = false;
        } else if is_start(text) {
            self.start();
        } else if self.is_running {
            self.running_line(line, report);
        }
    }

    pub(super) fn finish(&mut self, report: &mut ReportBuilder) {
        self.explain(report);
    }

    fn start(&mut self) {
        if self.failed.is_empty() {
            self.is_running = true;
        }
        if self.scope.is_empty() {
            self.unnamed += 1;
            self.scope = format!("#{}", self.unnamed);
        }
    }

    fn running_line(&mut self, line: &PlainLine<'_>, report: &mut ReportBuilder) {
        let text = line.text;
        if text.starts_with("test result: ") {
            self.explain(report);
            self.is_running = false;
            self.scope.clear();
            self.suite.clear();
        } else if let Some(name) = output_heading(text) {
            self.explain(report);
            name.clone_into(&mut self.failed);
        } else if text == "failures:" {
            self.explain(report);
        } else if !self.failed.is_empty() {
            if text == "stack backtrace:" || text.starts_with("note: run with `RUST_BACKTRACE") {
                self.text.complete();
            }
            self.text.push(text);
        } else if let Some(result) = TestLine::parse(text) {
            let attempt = TestAttempt {
                outcome: result.outcome,
                duration: result.duration,
                message: result.reason.to_owned(),
                details: String::new(),
                position: line.position,
            };
            report.add_attempt(self.id(result.name), attempt);
        }
    }

    /// Adds the output of a failed test to its result.
    fn explain(&mut self, report: &mut ReportBuilder) {
        if !self.failed.is_empty() {
            let message = self.text.first_line("thread '");
            report.explain(self.id(&self.failed), message, self.text.text());
            self.failed.clear();
            self.text.clear();
        }
    }

    fn id<'a>(&'a self, name: &'a str) -> TestId<'a> {
        TestId {
            runner: TestRunner::CargoTest,
            suite: &self.suite,
            scope: &self.scope,
            name,
        }
    }
}

/// A line of Cargo that names the next test program.
struct Heading {
    suite: String,
    scope: String,
}

/// Whether a line of Cargo names the next test program.
pub(super) fn is_heading(text: &str) -> bool {
    Heading::parse(text).is_some()
}

impl Heading {
    /// `Running unittests src/lib.rs (target/debug/deps/demo-6608bf82a9088484)`, `Doc-tests demo`.
    fn parse(text: &str) -> Option<Self> {
        let text = text.strip_prefix("   ")?.trim();
        if let Some(package) = text.strip_prefix("Doc-tests ") {
            return Some(Self {
                suite: format!("{package} (doc-tests)"),
                scope: text.to_owned(),
            });
        }
        let (source, program) = text
            .strip_prefix("Running ")?
            .strip_suffix(')')?
            .rsplit_once(" (")?;
        let source = source.strip_prefix("unittests ").unwrap_or(source);
        let (_, name) = program.rsplit_once(['/', '\\']).unwrap_or(("", program));
        let name = name.rsplit_once('-').map_or(name, |(name, _)| name);
        Some(Self {
            suite: format!("{name} ({source})"),
            scope: program.to_owned(),
        })
    }
}

/// `running 4 tests`.
fn is_start(text: &str) -> bool {
    let number = text.strip_prefix("running ");
    let number = number.and_then(|rest| rest.strip_suffix(" tests").or(rest.strip_suffix(" test")));
    number.is_some_and(|number| number.parse::<u64>().is_ok())
}

/// `---- tests::subtracts stdout ----`.
fn output_heading(text: &str) -> Option<&str> {
    let name = text.strip_prefix("---- ")?.strip_suffix(" ----")?;
    name.strip_suffix(" stdout")
        .or(name.strip_suffix(" stderr"))
}

/// The result of a test.
struct TestLine<'a> {
    name: &'a str,
    outcome: TestOutcome,
    duration: Option<std::time::Duration>,
    reason: &'a str,
}

impl<'a> TestLine<'a> {
    /// `test NAME ... ok`, `… ignored, REASON`, `… FAILED <0.012s>`.
    fn parse(text: &'a str) -> Option<Self> {
        let (name, result) = text.strip_prefix("test ")?.rsplit_once(" ... ")?;
        let (result, duration) = match result
            .strip_suffix('>')
            .and_then(|rest| rest.rsplit_once(" <"))
        {
            Some((result, duration)) => (result, parse_duration(duration)),
            None => (result, None),
        };
        let (outcome, reason) = match result {
            "ok" => (TestOutcome::Passed, ""),
            "FAILED" => (TestOutcome::Failed, ""),
            "ignored" => (TestOutcome::Skipped, ""),
            other => (TestOutcome::Skipped, other.strip_prefix("ignored, ")?),
        };
        Some(Self {
            name: name.strip_suffix(" - should panic").unwrap_or(name),
            outcome,
            duration,
            reason,
        })
    }
}
