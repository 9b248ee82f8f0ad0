//! pytest: results of `-v`, the sections about failures and the short summary.

use std::collections::VecDeque;

use crate::diagnostic::{DiagnosticSeverity, SourceLocation, Tool, ToolDiagnostic};
use crate::diagnostics::split_location;
use crate::failure_text::FailureText;
use crate::limits::PENDING;
use crate::output_line::PlainLine;
use crate::report_builder::{ReportBuilder, TestId};
use crate::test_result::{TestAttempt, TestOutcome, TestRunner};

/// Failures whose section was printed and whose test is named later.
const SECTIONS: usize = PENDING / 10;

/// Parses its output.
#[derive(Debug, Default)]
pub(super) struct PytestParser {
    phase: Phase,
    /// Whether results were printed one by one; the summary repeats them.
    is_verbose: bool,
    sections: VecDeque<Section>,
}

/// The part of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Phase {
    /// Output of other programs.
    #[default]
    Outside,
    /// Results, one by one.
    Results,
    /// What is printed about each failure.
    Failures,
    /// The short summary.
    Summary,
}

/// What is printed about a failure.
#[derive(Debug)]
struct Section {
    /// The test as the heading names it: `TestClass.test_one`.
    name: String,
    text: FailureText,
    /// Where it failed, and the type of the exception.
    location: Option<SourceLocation>,
    exception: String,
}

impl PytestParser {
    pub(super) fn line(&mut self, line: &PlainLine<'_>, report: &mut ReportBuilder) {
        if let Some(heading) = surrounded(line.text, '=') {
            self.heading(heading);
            return;
        }
        match self.phase {
            Phase::Outside => {}
            Phase::Results => self.result_line(line, report),
            Phase::Failures => self.failure_line(line.text),
            Phase::Summary => self.summary_line(line, report),
        }
    }

    fn heading(&mut self, heading: &str) {
        self.phase = match heading {
            "test session starts" => {
                *self = Self::default();
                Phase::Results
            }
            "FAILURES" | "ERRORS" => Phase::Failures,
            "short test summary info" => Phase::Summary,
            other if is_totals(other) => {
                *self = Self::default();
                Phase::Outside
            }
            _ if self.phase == Phase::Results => Phase::Results,
            _ => Phase::Outside,
        };
    }

    fn result_line(&mut self, line: &PlainLine<'_>, report: &mut ReportBuilder) {
        if let Some(result) = ResultLine::parse(line.text) {
            self.is_verbose = true;
            add(&result, "", line, report);
        }
    }

    fn failure_line(&mut self, text: &str) {
        if let Some(heading) = surrounded(text, '_') {
            let name = [
                "ERROR at setup of ",
                "ERROR at teardown of ",
                "ERROR collecting ",
            ]
            .into_iter()
            .find_map(|words| heading.strip_prefix(words));
            if self.sections.len() == SECTIONS {
                self.sections.pop_front();
            }
            self.sections.push_back(Section {
                name: name.unwrap_or(heading).to_owned(),
                text: FailureText::default(),
                location: None,
                exception: String::new(),
            });
            return;
        }
        let Some(section) = self.sections.back_mut() else {
            return;
        };
        if let Some(message) = text.strip_prefix("E ") {
            section.text.push(message.trim_start_matches(' '));
        } else if let Some((location, exception)) = split_location(text)
            && !exception.contains(' ')
        {
            section.location = Some(location);
            exception.clone_into(&mut section.exception);
        }
    }

    fn summary_line(&mut self, line: &PlainLine<'_>, report: &mut ReportBuilder) {
        let Some((word, rest)) = line.text.split_once(' ') else {
            return;
        };
        let Some(outcome) = outcome(word) else {
            if is_totals(line.text) {
                *self = Self::default();
            }
            return;
        };
        if word == "SKIPPED" {
            // Named by its place, not by its id.
            return;
        }
        let (node, message) = split_message(rest);
        let Some(result) = ResultLine::of(node, outcome) else {
            return;
        };
        let section = if outcome.is_failure() {
            self.take_section(&result)
        } else {
            None
        };
        let text = section
            .as_ref()
            .map(|section| section.text.clone())
            .unwrap_or_default();
        let details = text.text();
        // The summary cuts messages to the width of a terminal.
        let message = match text.first_line("") {
            first if message.ends_with("...") && !first.is_empty() => first,
            _ => message,
        };
        if self.is_verbose && report.has_test(result.id()) {
            report.explain(result.id(), message, details);
        } else {
            add(&ResultLine { message, ..result }, details, line, report);
        }
        if outcome.is_failure() {
            report.add_diagnostic(diagnostic(&result, message, section, line));
        }
    }

    /// The section about a failed test.
    fn take_section(&mut self, result: &ResultLine<'_>) -> Option<Section> {
        // The parameters of a test may hold anything.
        let (path, parameters) = result
            .name
            .split_at(result.name.find('[').unwrap_or(result.name.len()));
        let name = format!("{}{parameters}", path.replace("::", "."));
        let of_name = |section: &&Section| section.name == name || section.name == result.file;
        let in_file = |section: &Section| {
            let location = section.location.as_ref();
            location.is_some_and(|location| location.file == result.file)
        };
        let exact = self
            .sections
            .iter()
            .position(|section| of_name(&section) && in_file(section));
        let index = exact.or_else(|| self.sections.iter().position(|section| of_name(&section)))?;
        self.sections.remove(index)
    }
}

fn add(result: &ResultLine<'_>, details: &str, line: &PlainLine<'_>, report: &mut ReportBuilder) {
    let attempt = TestAttempt {
        outcome: result.outcome,
        duration: None,
        message: result.message.to_owned(),
        details: details.to_owned(),
        position: line.position,
    };
    report.add_attempt(result.id(), attempt);
}

/// A failed test as a diagnostic about its file.
fn diagnostic(
    result: &ResultLine<'_>,
    message: &str,
    section: Option<Section>,
    line: &PlainLine<'_>,
) -> ToolDiagnostic {
    let file = SourceLocation {
        file: result.file.to_owned(),
        line: None,
        column: None,
    };
    let (location, exception) = match section {
        Some(section) => (section.location.unwrap_or(file), section.exception),
        None => (file, String::new()),
    };
    let what = if message.is_empty() {
        "failed"
    } else {
        message
    };
    ToolDiagnostic {
        tool: Tool::Pytest,
        severity: DiagnosticSeverity::Error,
        rule: (!exception.is_empty()).then_some(exception),
        message: format!("{}: {what}", result.name),
        location: Some(location),
        position: line.position,
    }
}

/// The result of a test.
#[derive(Debug, Clone, Copy)]
struct ResultLine<'a> {
    file: &'a str,
    /// The rest of its id.
    name: &'a str,
    outcome: TestOutcome,
    message: &'a str,
}

impl<'a> ResultLine<'a> {
    /// `tests/test_a.py::test_two FAILED   [ 25%]`, `… SKIPPED (reason)`, and the form of xdist,
    /// `[gw0] [ 25%] FAILED tests/test_a.py::test_two`.
    fn parse(text: &'a str) -> Option<Self> {
        if let Some(rest) = text.strip_prefix("[gw") {
            let (_, rest) = rest.split_once("%] ")?;
            let (word, node) = rest.trim_start().split_once(' ')?;
            return Self::of(node.trim(), outcome(word)?);
        }
        let text = text.trim_end();
        let percent = text
            .strip_suffix("%]")
            .and_then(|text| text.rsplit_once('['));
        let text = percent.map_or(text, |(text, _)| text).trim_end();
        let (text, reason) = match text
            .strip_suffix(')')
            .and_then(|text| text.rsplit_once(" ("))
        {
            Some((text, reason)) => (text, reason),
            None => (text, ""),
        };
        let (node, word) = text.rsplit_once(' ')?;
        let result = Self::of(node, outcome(word)?)?;
        Some(Self {
            message: reason,
            ..result
        })
    }

    /// A result by the id of a test; also of a file that could not be collected.
    fn of(node: &'a str, outcome: TestOutcome) -> Option<Self> {
        let (file, name) = match node.split_once("::") {
            Some((file, name)) => (file, name),
            None => (node, node),
        };
        let is_file = file.ends_with(".py") || file.ends_with(".txt") || file.ends_with(".md");
        is_file.then_some(Self {
            file,
            name,
            outcome,
            message: "",
        })
    }

    const fn id(&self) -> TestId<'a> {
        TestId {
            runner: TestRunner::Pytest,
            suite: self.file,
            scope: self.file,
            name: self.name,
        }
    }
}

/// The outcome that a word means. A test that is run again failed.
fn outcome(word: &str) -> Option<TestOutcome> {
    match word {
        "PASSED" | "XFAIL" | "XPASS" => Some(TestOutcome::Passed),
        "FAILED" | "RERUN" => Some(TestOutcome::Failed),
        "ERROR" => Some(TestOutcome::Error),
        "SKIPPED" => Some(TestOutcome::Skipped),
        _ => None,
    }
}

/// Splits `id - message`; the parameters in an id may hold ` - `.
fn split_message(text: &str) -> (&str, &str) {
    let from = match (text.find('['), text.find(" - ")) {
        (Some(bracket), Some(dash)) if bracket < dash => {
            text.find("] - ").map_or(dash, |at| at + 1)
        }
        (_, Some(dash)) => dash,
        (_, None) => return (text, ""),
    };
    let (node, rest) = text.split_at(from);
    (node, rest.trim_start_matches(" - "))
}

/// What a line shows between rows of a character: `==== FAILURES ====`.
fn surrounded(text: &str, character: char) -> Option<&str> {
    let inner = text.trim_matches(character);
    let is_surrounded = text.starts_with(character) && text.ends_with(character);
    let inner = inner.strip_prefix(' ')?.strip_suffix(' ')?;
    is_surrounded.then_some(inner)
}

/// `3 failed, 2 passed in 0.02s`.
fn is_totals(text: &str) -> bool {
    let begins_with_number = text.starts_with(|c: char| c.is_ascii_digit());
    let words = [
        "passed",
        "failed",
        "error",
        "skipped",
        "deselected",
        "no tests ran",
        "xfailed",
    ];
    let names_one = words.iter().any(|word| text.contains(word));
    text.contains(" in ") && names_one && (begins_with_number || text.starts_with("no tests"))
}
