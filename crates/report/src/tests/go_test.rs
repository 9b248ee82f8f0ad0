//! `go test`, with and without `-v`.

use super::durations::split_duration_in_parens;
use crate::failure_text::FailureText;
use crate::limits::{DETAILS_BYTES, MESSAGE_BYTES, NAME_BYTES, PENDING, cut};
use crate::output_line::{OutputPosition, PlainLine};
use crate::report_builder::{ReportBuilder, TestId};
use crate::test_result::{TestAttempt, TestOutcome, TestRunner};

/// Tests that were started and whose logs are kept.
const STARTED: usize = PENDING / 10;
/// Bytes of results that wait for the name of their package; beyond, they have none.
const ENDED_BYTES: usize = 4 * 1024 * 1024;

/// Parses its output. A package is named after its tests, so their results wait for it.
#[derive(Debug, Default)]
pub(super) struct GoTestParser {
    ended: Vec<EndedTest>,
    /// Bytes of their texts, without what is logged after them.
    ended_bytes: usize,
    /// Tests that were started and have no result.
    started: Vec<StartedTest>,
    /// What the next line of a log belongs to.
    log: LogOwner,
}

#[derive(Debug)]
struct EndedTest {
    name: String,
    attempt: TestAttempt,
}

#[derive(Debug)]
struct StartedTest {
    name: String,
    position: OutputPosition,
    log: FailureText,
}

/// The test that logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum LogOwner {
    #[default]
    None,
    /// One that was started, by its index: with `-v`, tests log before their results.
    Started(usize),
    /// The last one with a result.
    Ended,
}

impl GoTestParser {
    pub(super) fn line(&mut self, line: &PlainLine<'_>, report: &mut ReportBuilder) {
        let text = line.text;
        if let Some(name) = text.strip_prefix("=== RUN   ") {
            self.begin(name, line.position);
        } else if let Some(name) = continued_test(text) {
            let started = self.started.iter().position(|test| test.name == name);
            self.log = started.map_or(LogOwner::None, LogOwner::Started);
        } else if let Some((outcome, rest)) = result(text) {
            self.result(outcome, rest, line.position, report);
        } else if let Some(package) = Package::parse(text) {
            self.package(&package, report);
        } else if text.starts_with("    ") {
            self.log_line(text.trim_start());
        } else if self.log == LogOwner::Ended {
            self.log = LogOwner::None;
        }
    }

    pub(super) fn finish(&mut self, report: &mut ReportBuilder) {
        self.flush("", report);
        self.started.clear();
    }

    fn begin(&mut self, name: &str, position: OutputPosition) {
        self.log = LogOwner::None;
        if self.started.len() < STARTED {
            self.log = LogOwner::Started(self.started.len());
            self.started.push(StartedTest {
                name: cut(name, NAME_BYTES).to_owned(),
                position,
                log: FailureText::default(),
            });
        }
    }

    fn log_line(&mut self, text: &str) {
        match self.log {
            LogOwner::None => {}
            LogOwner::Started(index) => {
                if let Some(test) = self.started.get_mut(index) {
                    test.log.push(text);
                }
            }
            LogOwner::Ended => {
                let attempt = self.ended.last_mut().map(|test| &mut test.attempt);
                if let Some(attempt) = attempt
                    && attempt.outcome != TestOutcome::Passed
                {
                    attempt.add_log_line(text);
                }
            }
        }
    }

    fn result(
        &mut self,
        outcome: TestOutcome,
        rest: &str,
        position: OutputPosition,
        report: &mut ReportBuilder,
    ) {
        let (name, duration) = split_duration_in_parens(rest);
        if self.ended.len() == PENDING || self.ended_bytes >= ENDED_BYTES {
            self.flush("", report);
        }
        let mut attempt = TestAttempt {
            outcome,
            duration,
            message: String::new(),
            details: String::new(),
            position,
        };
        let started = self.started.iter().position(|test| test.name == name);
        let log = started.map(|index| self.started.remove(index).log);
        if let Some(log) = log
            && outcome != TestOutcome::Passed
        {
            log.text()
                .lines()
                .for_each(|line| attempt.add_log_line(line));
        }
        let name = cut(name, NAME_BYTES).to_owned();
        self.ended_bytes += name.len() + attempt.message.len() + attempt.details.len();
        self.ended.push(EndedTest { name, attempt });
        self.log = LogOwner::Ended;
    }

    fn package(&mut self, package: &Package<'_>, report: &mut ReportBuilder) {
        if package.has_failed {
            for test in std::mem::take(&mut self.started) {
                self.ended.push(EndedTest {
                    name: test.name,
                    attempt: TestAttempt {
                        outcome: TestOutcome::Error,
                        duration: None,
                        message: "the test program ended before the test".to_owned(),
                        details: String::new(),
                        position: test.position,
                    },
                });
            }
        }
        self.started.clear();
        self.log = LogOwner::None;
        self.flush(package.name, report);
    }

    fn flush(&mut self, package: &str, report: &mut ReportBuilder) {
        self.ended_bytes = 0;
        for test in std::mem::take(&mut self.ended) {
            let id = TestId {
                runner: TestRunner::GoTest,
                suite: package,
                scope: package,
                name: &test.name,
            };
            report.add_attempt(id, test.attempt);
        }
    }
}

impl TestAttempt {
    /// Adds a line of a log, the first of which is the message.
    fn add_log_line(&mut self, line: &str) {
        if self.message.is_empty() {
            cut(line, MESSAGE_BYTES).clone_into(&mut self.message);
        }
        if self.details.len() + line.len() < DETAILS_BYTES {
            self.details.push_str(line);
            self.details.push('\n');
        }
    }
}

/// The test of `=== NAME  TestSum/small`, `=== CONT  …`, `=== PAUSE …`.
fn continued_test(text: &str) -> Option<&str> {
    let (word, name) = text.strip_prefix("=== ")?.split_once(' ')?;
    matches!(word, "NAME" | "CONT" | "PAUSE").then(|| name.trim_start())
}

/// `--- FAIL: TestSum/small (0.00s)`, indented for a subtest: its outcome, and the rest.
fn result(text: &str) -> Option<(TestOutcome, &str)> {
    let (word, rest) = text
        .trim_start_matches(' ')
        .strip_prefix("--- ")?
        .split_once(": ")?;
    let outcome = match word {
        "PASS" => TestOutcome::Passed,
        "FAIL" => TestOutcome::Failed,
        "SKIP" => TestOutcome::Skipped,
        _ => return None,
    };
    rest.ends_with("s)").then_some((outcome, rest))
}

/// The end of a package: `ok  <tab>a.test/sum<tab>0.004s`.
struct Package<'a> {
    name: &'a str,
    has_failed: bool,
}

impl<'a> Package<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let (word, rest) = text.split_once('\t')?;
        let has_failed = match word.trim_end() {
            "ok" => false,
            "FAIL" => true,
            _ => return None,
        };
        let name = rest
            .split(['\t', ' '])
            .next()
            .filter(|name| !name.is_empty())?;
        Some(Self { name, has_failed })
    }
}
