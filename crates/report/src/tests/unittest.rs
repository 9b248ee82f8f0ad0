//! Python's unittest, with and without `-v`.

use crate::failure_text::FailureText;
use crate::output_line::{OutputPosition, PlainLine};
use crate::report_builder::{ReportBuilder, TestId};
use crate::test_result::{TestAttempt, TestOutcome, TestRunner};

/// The fewest characters of the lines between the failures; it prints 70.
const RULE_LENGTH: usize = 60;

/// Parses its output.
#[derive(Debug, Default)]
pub(super) struct UnittestParser {
    /// The test of the line before, where its result may be on the next one: it has a description.
    described: Option<TestName>,
    /// Whether results were printed one by one; failures repeat them.
    is_verbose: bool,
    /// Whether the line before separates failures.
    is_after_rule: bool,
    failure: Option<Failure>,
    text: FailureText,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct TestName {
    class: String,
    method: String,
}

#[derive(Debug)]
struct Failure {
    test: TestName,
    outcome: TestOutcome,
    position: OutputPosition,
}

impl UnittestParser {
    pub(super) fn line(&mut self, line: &PlainLine<'_>, report: &mut ReportBuilder) {
        let text = line.text;
        let is_after_rule = std::mem::replace(&mut self.is_after_rule, is_rule(text, '='));
        if self.is_after_rule {
            self.end_failure(report);
        } else if is_after_rule {
            self.begin_failure(line);
        } else if is_end(text) {
            self.end_failure(report);
            *self = Self::default();
        } else if self.failure.is_some() {
            if !is_rule(text, '-') {
                self.text.push(text);
            }
        } else {
            self.result_line(line, report);
        }
    }

    pub(super) fn finish(&mut self, report: &mut ReportBuilder) {
        self.end_failure(report);
    }

    /// `FAIL: test_bad (test_u.Sums.test_bad)`.
    fn begin_failure(&mut self, line: &PlainLine<'_>) {
        let words = [
            ("FAIL: ", TestOutcome::Failed),
            ("ERROR: ", TestOutcome::Error),
            ("UNEXPECTED SUCCESS: ", TestOutcome::Failed),
        ];
        self.failure = words.into_iter().find_map(|(word, outcome)| {
            Some(Failure {
                test: TestName::parse(line.text.strip_prefix(word)?)?,
                outcome,
                position: line.position,
            })
        });
    }

    fn end_failure(&mut self, report: &mut ReportBuilder) {
        let text = std::mem::take(&mut self.text);
        let Some(failure) = self.failure.take() else {
            return;
        };
        let (message, details) = (text.last_line(), text.text());
        if self.is_verbose && report.has_test(failure.test.id()) {
            report.explain(failure.test.id(), message, details);
            return;
        }
        let attempt = TestAttempt {
            outcome: failure.outcome,
            duration: None,
            message: message.to_owned(),
            details: details.to_owned(),
            position: failure.position,
        };
        report.add_attempt(failure.test.id(), attempt);
    }

    /// `test_ok (test_u.Sums.test_ok) ... ok`, or the name of a test with a description on one
    /// line, and `description ... ok` on the next.
    fn result_line(&mut self, line: &PlainLine<'_>, report: &mut ReportBuilder) {
        let described = self.described.take();
        let text = line.text.trim_start();
        let Some((name, result)) = text.rsplit_once(" ... ") else {
            self.described = TestName::parse(text);
            return;
        };
        let Some((outcome, reason)) = outcome(result) else {
            return;
        };
        let Some(test) = TestName::parse(name).or(described) else {
            return;
        };
        self.is_verbose = true;
        let attempt = TestAttempt {
            outcome,
            duration: None,
            message: reason.to_owned(),
            details: String::new(),
            position: line.position,
        };
        report.add_attempt(test.id(), attempt);
    }
}

impl TestName {
    /// `test_a (module.Class.test_a) (i=1)`; before Python 3.11, `test_a (module.Class)`.
    fn parse(text: &str) -> Option<Self> {
        let (method, rest) = text.split_once(" (")?;
        let (path, arguments) = rest.split_once(')')?;
        let is_word =
            |word: &str| !word.is_empty() && word.chars().all(|c| c.is_alphanumeric() || c == '_');
        if !is_word(method) || !path.contains('.') || !path.split('.').all(is_word) {
            return None;
        }
        let class = path
            .strip_suffix(method)
            .and_then(|path| path.strip_suffix('.'));
        Some(Self {
            class: class.unwrap_or(path).to_owned(),
            method: format!("{method}{}", arguments.trim_end()),
        })
    }

    fn id(&self) -> TestId<'_> {
        TestId {
            runner: TestRunner::Unittest,
            suite: &self.class,
            scope: &self.class,
            name: &self.method,
        }
    }
}

/// The outcome that a word means, and the reason of a skip.
fn outcome(result: &str) -> Option<(TestOutcome, &str)> {
    let outcome = match result {
        "ok" | "expected failure" => TestOutcome::Passed,
        "FAIL" | "unexpected success" => TestOutcome::Failed,
        "ERROR" => TestOutcome::Error,
        other => {
            let reason = other.strip_prefix("skipped ")?;
            return Some((TestOutcome::Skipped, reason.trim_matches(['\'', '"'])));
        }
    };
    Some((outcome, ""))
}

fn is_rule(text: &str, character: char) -> bool {
    text.len() >= RULE_LENGTH && text.chars().all(|c| c == character)
}

/// `Ran 7 tests in 0.001s`.
fn is_end(text: &str) -> bool {
    text.starts_with("Ran ") && text.contains(" test") && text.ends_with('s')
}
