//! Vitest, default and verbose reporter.

use std::time::Duration;

use super::durations::parse_duration;
use crate::failure_text::FailureText;
use crate::output_line::{OutputPosition, PlainLine};
use crate::report_builder::{ReportBuilder, TestId};
use crate::test_result::{TestAttempt, TestOutcome, TestRunner};

/// Between a file and the names of nested blocks.
const SEPARATOR: &str = " > ";

/// Parses its output.
#[derive(Debug, Default)]
pub(super) struct VitestParser {
    is_running: bool,
    /// The file whose tests are listed.
    file: String,
    failure: Option<Failure>,
    text: FailureText,
}

#[derive(Debug)]
struct Failure {
    file: String,
    name: String,
    position: OutputPosition,
}

impl VitestParser {
    pub(super) fn line(&mut self, line: &PlainLine<'_>, report: &mut ReportBuilder) {
        let text = line.text.trim();
        if text.starts_with("RUN  v") {
            *self = Self::default();
            self.is_running = true;
        } else if !self.is_running {
            // Output of other programs.
        } else if text.starts_with("Test Files  ") {
            self.end_failure(report);
            self.is_running = false;
        } else if let Some(failure) = text.strip_prefix("FAIL  ") {
            self.end_failure(report);
            self.begin_failure(failure, line.position);
        } else if text.starts_with("⎯⎯") {
            self.end_failure(report);
        } else if self.failure.is_some() {
            self.text.push(text);
        } else {
            self.list_line(line, report);
        }
    }

    pub(super) fn finish(&mut self, report: &mut ReportBuilder) {
        self.end_failure(report);
    }

    /// ` ❯ src/sum.test.ts (3 tests | 1 failed) 8ms`, and a test of it, `   × sum > adds 5ms`; with
    /// the verbose reporter, ` ✓ src/sum.test.ts > sum > adds 1ms`.
    fn list_line(&mut self, line: &PlainLine<'_>, report: &mut ReportBuilder) {
        let Some((symbol, rest)) = line.text.trim_start().split_once(' ') else {
            return;
        };
        let outcome = match symbol {
            "✓" | "√" => TestOutcome::Passed,
            "×" => TestOutcome::Failed,
            "↓" => TestOutcome::Skipped,
            "❯" => {
                self.begin_file(rest);
                return;
            }
            _ => return,
        };
        if is_file_line(rest) {
            self.begin_file(rest);
            return;
        }
        let test = TestTitle::parse(rest);
        let (file, name) = match test.title.split_once(SEPARATOR) {
            Some((file, name)) if is_file(file) => (file, name),
            Some(_) | None => (self.file.as_str(), test.title),
        };
        if file.is_empty() {
            return;
        }
        let attempt = |outcome, message: &str| TestAttempt {
            outcome,
            duration: test.duration,
            message: message.to_owned(),
            details: String::new(),
            position: line.position,
        };
        if outcome == TestOutcome::Passed && test.is_retried {
            let message = "failed before it was retried";
            report.add_attempt(id(file, name), attempt(TestOutcome::Failed, message));
        }
        report.add_attempt(id(file, name), attempt(outcome, ""));
    }

    fn begin_file(&mut self, text: &str) {
        let file = text.split(' ').find(|word| is_file(word));
        file.unwrap_or_default().clone_into(&mut self.file);
    }

    /// ` FAIL  src/sum.test.ts > sum > adds`; of a file that could not be loaded,
    /// ` FAIL  src/sum.test.ts [ src/sum.test.ts ]`.
    fn begin_failure(&mut self, text: &str, position: OutputPosition) {
        let text = match text
            .strip_prefix('|')
            .and_then(|text| text.split_once("| "))
        {
            Some((_, text)) => text,
            None => text,
        };
        let (file, name) = match (text.split_once(SEPARATOR), text.split_once(" [ ")) {
            (Some((file, name)), _) => (file, name),
            (None, Some((file, _))) => (file, file),
            (None, None) => return,
        };
        self.failure = Some(Failure {
            file: file.to_owned(),
            name: name.to_owned(),
            position,
        });
    }

    fn end_failure(&mut self, report: &mut ReportBuilder) {
        let text = std::mem::take(&mut self.text);
        let Some(failure) = self.failure.take() else {
            return;
        };
        let id = id(&failure.file, &failure.name);
        if report.has_test(id) {
            report.explain(id, text.first_line(""), text.text());
            return;
        }
        let outcome = if failure.file == failure.name {
            TestOutcome::Error
        } else {
            TestOutcome::Failed
        };
        let attempt = TestAttempt {
            outcome,
            duration: None,
            message: text.first_line("").to_owned(),
            details: text.text().to_owned(),
            position: failure.position,
        };
        report.add_attempt(id, attempt);
    }
}

fn id<'a>(file: &'a str, name: &'a str) -> TestId<'a> {
    TestId {
        runner: TestRunner::Vitest,
        suite: file,
        scope: file,
        name,
    }
}

/// Whether a word is the path of a source file.
fn is_file(word: &str) -> bool {
    let extension = word.rsplit_once('.').map(|(_, extension)| extension);
    let known = ["js", "ts", "jsx", "tsx", "mjs", "cjs", "mts", "cts", "vue"];
    !word.contains(' ') && extension.is_some_and(|extension| known.contains(&extension))
}

/// Whether what follows a symbol is a file with the number of its tests.
fn is_file_line(text: &str) -> bool {
    text.split_once(" (").is_some_and(|(before, after)| {
        before.split(' ').next_back().is_some_and(is_file) && after.contains("test")
    })
}

/// The title of a test, without what is printed after it.
struct TestTitle<'a> {
    title: &'a str,
    duration: Option<Duration>,
    is_retried: bool,
}

impl<'a> TestTitle<'a> {
    /// `sum > adds 5ms (retry x1)`.
    fn parse(text: &'a str) -> Self {
        let mut test = Self {
            title: text.trim_end(),
            duration: None,
            is_retried: false,
        };
        for _ in 0..2 {
            let Some((title, last)) = test.title.rsplit_once(' ') else {
                break;
            };
            let retried = title.strip_suffix(" (retry");
            if let (Some(title), true) = (retried, last.starts_with('x') && last.ends_with(')')) {
                test.title = title;
                test.is_retried = true;
            } else if test.duration.is_none()
                && let Some(duration) = parse_duration(last)
            {
                test.title = title;
                test.duration = Some(duration);
            }
        }
        test
    }
}
