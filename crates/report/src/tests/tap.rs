//! The Test Anything Protocol, versions 12 to 14 with subtests, and what `prove` prints about files.

use super::durations::parse_milliseconds;
use crate::failure_text::FailureText;
use crate::output_line::{OutputPosition, PlainLine};
use crate::report_builder::{ReportBuilder, TestId};
use crate::test_result::{TestAttempt, TestOutcome, TestRunner};

/// Spaces before the lines of a subtest, for each level.
const INDENT: usize = 4;
/// The deepest level that is told apart.
const LEVELS: usize = 16;

/// Parses it.
#[derive(Debug, Default)]
pub(super) struct TapParser {
    is_active: bool,
    /// The file that `prove` runs.
    file: Option<ProveFile>,
    /// The number of documents so far.
    documents: u64,
    /// Whether the document has a result that is not of a subtest.
    has_results: bool,
    /// Names of subtests, by level.
    subtests: Vec<String>,
    pending: Option<PendingResult>,
}

/// A file of `prove`.
#[derive(Debug)]
struct ProveFile {
    name: String,
    /// Whether its results are printed one by one.
    has_results: bool,
}

/// A result whose diagnostics may follow.
#[derive(Debug)]
struct PendingResult {
    name: String,
    number: u64,
    outcome: TestOutcome,
    reason: String,
    position: OutputPosition,
    yaml: YamlBlock,
    comments: FailureText,
}

/// The diagnostics of a result: lines between `---` and `...`.
#[derive(Debug, Default)]
struct YamlBlock {
    is_open: bool,
    /// Spaces before its first line.
    indent: usize,
    is_suite: bool,
    duration: Option<std::time::Duration>,
    error: String,
    /// Whether the error is the next line: `error: |-`.
    error_follows: bool,
    text: FailureText,
}

impl TapParser {
    pub(super) fn line(&mut self, line: &PlainLine<'_>, report: &mut ReportBuilder) {
        if self.pending_line(line.text) {
            return;
        }
        if self.prove_line(line, report) {
            return;
        }
        let text = line.text.trim_start_matches(' ');
        let level = ((line.text.len() - text.len()) / INDENT).min(LEVELS);
        if let Some(result) = ResultLine::parse(text) {
            self.end_pending(report);
            self.result(&result, level, line.position);
            return;
        }
        if let Some(name) = text.strip_prefix("# Subtest: ") {
            self.end_pending(report);
            self.subtests.truncate(level);
            self.subtests.push(unescape(name));
        } else if level == 0 && (text.starts_with("TAP version ") || is_plan(text)) {
            self.end_pending(report);
            // A plan may also follow the results.
            if !self.is_active || text.starts_with("TAP") {
                self.begin_document();
            }
        } else if !text.starts_with('#') {
            self.end_pending(report);
        }
    }

    pub(super) fn finish(&mut self, report: &mut ReportBuilder) {
        self.end_pending(report);
    }

    fn begin_document(&mut self) {
        self.is_active = true;
        self.documents += 1;
        self.has_results = false;
        self.subtests.clear();
    }

    /// Takes a line that belongs to the last result.
    fn pending_line(&mut self, text: &str) -> bool {
        let Some(pending) = &mut self.pending else {
            return false;
        };
        let line = text;
        let text = line.trim_start_matches(' ');
        let indent = line.len() - text.len();
        let is_yaml = if pending.yaml.is_open {
            // A block that was not ended ends with its indentation.
            indent >= pending.yaml.indent || text.is_empty()
        } else {
            text == "---"
        };
        if is_yaml {
            pending.yaml.line(text, indent);
            return true;
        }
        pending.yaml.is_open = false;
        let is_comment = text.starts_with('#') && !text.starts_with("# Subtest: ");
        if is_comment && pending.outcome.is_failure() {
            pending.comments.push(text.trim_start_matches(['#', ' ']));
        }
        is_comment
    }

    fn result(&mut self, result: &ResultLine<'_>, level: usize, position: OutputPosition) {
        let is_top = level == 0;
        if is_top && result.number == Some(1) {
            // Without a version and a plan before it, a result has a dash or nothing else.
            if self.has_results || (!self.is_active && result.is_strict) {
                self.begin_document();
            }
        }
        if !self.is_active {
            return;
        }
        self.has_results |= is_top;
        if let Some(file) = &mut self.file {
            file.has_results = true;
        }
        let number = result.number.unwrap_or_default();
        let mut path: Vec<&str> = self
            .subtests
            .iter()
            .take(level)
            .map(String::as_str)
            .collect();
        let unnamed = format!("test {number}");
        let description = unescape(result.description);
        path.push(if description.is_empty() {
            &unnamed
        } else {
            &description
        });
        self.pending = Some(PendingResult {
            name: path.join(" > "),
            number,
            outcome: result.outcome,
            reason: result.reason.to_owned(),
            position,
            yaml: YamlBlock::default(),
            comments: FailureText::default(),
        });
        self.subtests.truncate(level);
    }

    fn end_pending(&mut self, report: &mut ReportBuilder) {
        let Some(pending) = self.pending.take() else {
            return;
        };
        if pending.yaml.is_suite {
            return;
        }
        let has_failed = pending.outcome.is_failure();
        let text = if pending.yaml.text.is_empty() {
            &pending.comments
        } else {
            &pending.yaml.text
        };
        let message = match (has_failed, pending.yaml.error.as_str()) {
            (false, _) => &pending.reason,
            (true, "") => text.first_line(""),
            (true, error) => error,
        };
        let attempt = TestAttempt {
            outcome: pending.outcome,
            duration: pending.yaml.duration,
            message: message.to_owned(),
            details: if has_failed { text.text() } else { "" }.to_owned(),
            position: pending.position,
        };
        let suite = self.file.as_ref().map_or("", |file| file.name.as_str());
        // Nothing says that two results of one name are attempts of one test, except in a file
        // that is run again.
        let scope = if suite.is_empty() {
            format!("#{} {}", self.documents, pending.number)
        } else {
            format!("{suite} {}", pending.number)
        };
        let id = TestId {
            runner: TestRunner::Tap,
            suite,
            scope: &scope,
            name: &pending.name,
        };
        report.add_attempt(id, attempt);
    }

    /// `t/basic.t .. `, `t/other.t .. ok`, `Failed 1/4 subtests`.
    fn prove_line(&mut self, line: &PlainLine<'_>, report: &mut ReportBuilder) -> bool {
        if let Some((name, result)) = prove_file(line.text) {
            self.end_pending(report);
            self.begin_document();
            self.file = Some(ProveFile {
                name: name.to_owned(),
                has_results: false,
            });
            let reason = result.strip_prefix("skipped: ");
            match (result, reason) {
                ("ok", _) => self.file_result(TestOutcome::Passed, "", line, report),
                (_, Some(reason)) => self.file_result(TestOutcome::Skipped, reason, line, report),
                _ => {}
            }
            return true;
        }
        if self.file.is_some()
            && line.text.starts_with("Failed ")
            && line.text.contains(" subtests")
        {
            self.end_pending(report);
            self.file_result(TestOutcome::Failed, line.text, line, report);
            return true;
        }
        if line.text == "Test Summary Report" || line.text.starts_with("Files=") {
            self.end_pending(report);
            self.file = None;
            self.is_active = false;
        }
        false
    }

    /// The result of a file whose results were not printed one by one.
    fn file_result(
        &mut self,
        outcome: TestOutcome,
        message: &str,
        line: &PlainLine<'_>,
        report: &mut ReportBuilder,
    ) {
        let Some(file) = &self.file else {
            return;
        };
        if file.has_results {
            return;
        }
        let attempt = TestAttempt {
            outcome,
            duration: None,
            message: message.to_owned(),
            details: String::new(),
            position: line.position,
        };
        let id = TestId {
            runner: TestRunner::Tap,
            suite: &file.name,
            scope: &file.name,
            name: &file.name,
        };
        report.add_attempt(id, attempt);
    }
}

impl YamlBlock {
    fn line(&mut self, text: &str, indent: usize) {
        if !self.is_open {
            self.is_open = true;
            self.indent = indent;
            return;
        }
        if text == "..." {
            self.is_open = false;
            return;
        }
        if std::mem::take(&mut self.error_follows) {
            text.clone_into(&mut self.error);
        }
        if let Some((key, value)) = text.split_once(": ") {
            match (key, value) {
                ("duration_ms", value) => self.duration = parse_milliseconds(value),
                ("type", "'suite'") => self.is_suite = true,
                ("error" | "message", "|-" | "|" | ">-") if self.error.is_empty() => {
                    self.error_follows = true;
                }
                ("error" | "message", value) if self.error.is_empty() => {
                    value.trim_matches(['\'', '"']).clone_into(&mut self.error);
                }
                _ => {}
            }
        }
        self.text.push(text);
    }
}

/// A line `not ok 2 - description # TODO reason`.
struct ResultLine<'a> {
    /// Whether a dash is before the description, or there is none.
    is_strict: bool,
    outcome: TestOutcome,
    number: Option<u64>,
    description: &'a str,
    reason: &'a str,
}

impl<'a> ResultLine<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let (is_ok, rest) = match text.strip_prefix("not ok") {
            Some(rest) => (false, rest),
            None => (true, text.strip_prefix("ok")?),
        };
        let rest = match rest.strip_prefix(' ') {
            Some(rest) => rest,
            None if rest.is_empty() => rest,
            None => return None,
        };
        let (number, rest) = match rest.split_once(' ') {
            Some((number, rest)) => (number, rest.trim()),
            None => (rest, ""),
        };
        // A result without a number has a description after a dash; other lines are text.
        let (number, rest) = match number {
            "-" => (None, rest),
            number => (Some(number.parse().ok()?), rest),
        };
        let is_strict = rest.is_empty() || rest.starts_with("- ") || rest.starts_with('#');
        let (description, directive) = split_directive(rest);
        let description = description.trim().trim_start_matches("- ");
        let (outcome, reason) = match (is_ok, directive) {
            (_, Some(Directive::Skip(reason))) => (TestOutcome::Skipped, reason),
            (false, Some(Directive::Todo(reason))) => (TestOutcome::Skipped, reason),
            (true, _) => (TestOutcome::Passed, ""),
            (false, None) => (TestOutcome::Failed, ""),
        };
        Some(Self {
            is_strict,
            outcome,
            number,
            description,
            reason,
        })
    }
}

/// `1..4`, also with a reason why nothing is run.
fn is_plan(text: &str) -> bool {
    let number = text
        .strip_prefix("1..")
        .and_then(|rest| rest.split(' ').next());
    number.is_some_and(|number| number.parse::<u64>().is_ok())
}

/// What a result adds after a `#`.
enum Directive<'a> {
    Skip(&'a str),
    /// A test that may fail.
    Todo(&'a str),
}

fn split_directive(text: &str) -> (&str, Option<Directive<'_>>) {
    const WORD_BYTES: usize = 4;
    let hash = text.rmatch_indices('#').map(|(at, _)| at);
    for at in hash.filter(|&at| !text[..at].ends_with('\\')) {
        let directive = text[at + 1..].trim_start();
        let Some((word, reason)) = directive.split_at_checked(WORD_BYTES) else {
            continue;
        };
        let reason = reason.trim_start_matches(|c: char| c.is_alphanumeric() || c == ':');
        if word.eq_ignore_ascii_case("skip") {
            return (&text[..at], Some(Directive::Skip(reason.trim())));
        }
        if word.eq_ignore_ascii_case("todo") {
            return (&text[..at], Some(Directive::Todo(reason.trim())));
        }
    }
    (text, None)
}

fn unescape(text: &str) -> String {
    text.replace("\\#", "#")
}

/// The file of a line `t/basic.t .. ok`, and what follows the dots.
fn prove_file(text: &str) -> Option<(&str, &str)> {
    let (file, rest) = text.split_once(" ..")?;
    let is_file = file.ends_with(".t") && !file.contains(' ');
    is_file.then_some((file, rest.trim_start_matches('.').trim()))
}
