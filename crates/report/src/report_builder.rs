//! Collects what the parsers recognise, within the limits.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use crate::diagnostic::{DiagnosticSeverity, SourceLocation, Tool, ToolDiagnostic};
use crate::limits::{
    ATTEMPTS, DETAILS_BYTES, DIAGNOSTICS, MESSAGE_BYTES, MORE_ERRORS, MORE_FAILED_TESTS,
    NAME_BYTES, REPORT_BYTES, TESTS, cut,
};
use crate::report::Report;
use crate::test_result::{TestAttempt, TestResult, TestRunner};

/// The identity of a test. Results with the same runner, scope and name are attempts of one test.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TestId<'a> {
    pub(crate) runner: TestRunner,
    /// The suite as it is shown.
    pub(crate) suite: &'a str,
    /// What names are unique in; two suites of one name have two scopes.
    pub(crate) scope: &'a str,
    pub(crate) name: &'a str,
}

/// A diagnostic by its place in the report; none where it is beyond the limits.
pub(crate) type DiagnosticIndex = Option<usize>;

#[derive(Debug, PartialEq, Eq, Hash)]
struct TestKey {
    runner: TestRunner,
    scope: String,
    name: String,
}

/// A report that is being made.
#[derive(Debug, Default)]
pub(crate) struct ReportBuilder {
    report: Report,
    tests: HashMap<TestKey, usize>,
    /// Bytes of all texts in the report.
    bytes: usize,
}

impl ReportBuilder {
    /// Adds a diagnostic. Its texts are cut.
    pub(crate) fn add_diagnostic(&mut self, diagnostic: ToolDiagnostic) -> DiagnosticIndex {
        let limit = match diagnostic.severity {
            DiagnosticSeverity::Error => DIAGNOSTICS + MORE_ERRORS,
            DiagnosticSeverity::Warning | DiagnosticSeverity::Note => DIAGNOSTICS,
        };
        if self.report.diagnostics.len() >= limit || self.bytes >= REPORT_BYTES {
            self.report.omitted_diagnostics += 1;
            return None;
        }
        let diagnostic = ToolDiagnostic {
            message: self.keep(diagnostic.message.trim(), MESSAGE_BYTES),
            rule: diagnostic.rule.map(|rule| self.keep(&rule, NAME_BYTES)),
            location: diagnostic.location.map(|location| SourceLocation {
                file: self.keep(&location.file, NAME_BYTES),
                ..location
            }),
            ..diagnostic
        };
        self.report.diagnostics.push(diagnostic);
        Some(self.report.diagnostics.len() - 1)
    }

    /// Names the rule of a diagnostic that was printed after it.
    pub(crate) fn set_rule(&mut self, index: DiagnosticIndex, tool: Tool, rule: &str) {
        let rule = self.keep(rule, NAME_BYTES);
        let diagnostic = index.and_then(|index| self.report.diagnostics.get_mut(index));
        if let Some(diagnostic) = diagnostic
            && diagnostic.rule.is_none()
        {
            diagnostic.tool = tool;
            diagnostic.rule = Some(rule);
        }
    }

    /// The number of diagnostics so far.
    pub(crate) const fn diagnostic_count(&self) -> usize {
        self.report.diagnostics.len()
    }

    /// The last `count` diagnostics of Python linters after the first `earlier` ones are ruff's.
    pub(crate) fn name_as_ruff(&mut self, earlier: usize, count: usize) {
        let newest_first = self.report.diagnostics[earlier..].iter_mut().rev();
        let linters = newest_first.filter(|one| matches!(one.tool, Tool::Flake8 | Tool::Ruff));
        for diagnostic in linters.take(count) {
            diagnostic.tool = Tool::Ruff;
        }
    }

    /// Adds a result of a test. Its texts are cut.
    pub(crate) fn add_attempt(&mut self, id: TestId<'_>, attempt: TestAttempt) {
        let attempt = TestAttempt {
            message: self.keep(attempt.message.trim(), MESSAGE_BYTES),
            details: self.keep(attempt.details.trim_end(), DETAILS_BYTES),
            ..attempt
        };
        let key = TestKey::of(id);
        if let Some(test) = self.tests.get(&key) {
            let attempts = &mut self.report.tests[*test].attempts;
            attempts.truncate(ATTEMPTS - 1);
            attempts.push(attempt);
            return;
        }
        let limit = if attempt.outcome.is_failure() {
            TESTS + MORE_FAILED_TESTS
        } else {
            TESTS
        };
        if self.report.tests.len() >= limit || self.bytes >= REPORT_BYTES {
            self.report.omitted_tests += 1;
            return;
        }
        let test = TestResult {
            runner: id.runner,
            suite: self.keep(id.suite, NAME_BYTES),
            name: self.keep(id.name, NAME_BYTES),
            attempts: vec![attempt],
        };
        self.bytes += key.scope.len() + key.name.len();
        self.tests.insert(key, self.report.tests.len());
        self.report.tests.push(test);
    }

    /// Whether a test has a result.
    pub(crate) fn has_test(&self, id: TestId<'_>) -> bool {
        self.tests.contains_key(&TestKey::of(id))
    }

    /// Adds why the last attempt of a test failed, where that was printed after its result.
    pub(crate) fn explain(&mut self, id: TestId<'_>, message: &str, details: &str) {
        let Some(test) = self.tests.get(&TestKey::of(id)).copied() else {
            return;
        };
        let message = self.keep(message.trim(), MESSAGE_BYTES);
        let details = self.keep(details, DETAILS_BYTES);
        let attempts = &mut self.report.tests[test].attempts;
        if let Some(attempt) = attempts.last_mut()
            && attempt.outcome.is_failure()
        {
            if attempt.message.is_empty() {
                attempt.message = message;
            }
            if attempt.details.is_empty() {
                attempt.details = details;
            }
        }
    }

    /// The report.
    pub(crate) fn finish(self) -> Report {
        self.report
    }

    /// A text of the report: cut, and empty where the report has too much of them.
    fn keep(&mut self, text: &str, limit: usize) -> String {
        if self.bytes >= REPORT_BYTES {
            return String::new();
        }
        let text = cut(text, limit).to_owned();
        self.bytes += text.len();
        text
    }
}

impl TestKey {
    fn of(id: TestId<'_>) -> Self {
        Self {
            runner: id.runner,
            scope: key_text(id.scope),
            name: key_text(id.name),
        }
    }
}

/// A text within the limit that differs where long texts do.
fn key_text(text: &str) -> String {
    if text.len() <= NAME_BYTES {
        return text.to_owned();
    }
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    format!("{}#{:x}", cut(text, NAME_BYTES), hasher.finish())
}
