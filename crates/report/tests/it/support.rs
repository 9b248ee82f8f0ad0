//! Fixtures, and reports as short texts.

use std::fmt::Write as _;

use ostler_model::StreamName;
use ostler_report::{
    OutputPosition, RawLine, Report, ReportCollector, TestAttempt, TestResult, ToolDiagnostic,
};

/// The report of a text that was printed on standard output.
pub(crate) fn report_of(text: &str) -> Report {
    let mut collector = ReportCollector::default();
    let mut offset = 0;
    for (index, line) in text.split('\n').enumerate() {
        let position = OutputPosition {
            stream: StreamName::Stdout,
            line: index as u64 + 1,
            offset,
        };
        offset += line.len() as u64 + 1;
        collector.line(&RawLine {
            position,
            text: line,
        });
    }
    collector.finish()
}

/// The report of a file in `tests/fixtures`.
pub(crate) fn report_of_fixture(name: &str) -> Report {
    let path = format!("{}/tests/fixtures/{name}.txt", env!("CARGO_MANIFEST_DIR"));
    report_of(&std::fs::read_to_string(path).unwrap())
}

/// One line for each diagnostic.
pub(crate) fn diagnostics(report: &Report) -> String {
    let mut text = String::new();
    for diagnostic in &report.diagnostics {
        writeln!(text, "{}", diagnostic_line(diagnostic)).unwrap();
    }
    text
}

fn diagnostic_line(diagnostic: &ToolDiagnostic) -> String {
    let place = diagnostic.location.as_ref().map(|location| {
        let numbers = [location.line, location.column].into_iter().flatten();
        let numbers = numbers.map(|number| format!(":{number}"));
        format!("{}{}", location.file, numbers.collect::<String>())
    });
    format!(
        "{} {} {} [{}] {:?} at line {}",
        diagnostic.tool.as_str(),
        diagnostic.severity.as_str(),
        place.unwrap_or_else(|| "-".to_owned()),
        diagnostic.rule.as_deref().unwrap_or("-"),
        diagnostic.message,
        diagnostic.position.line,
    )
}

/// One line for each test, and one for each further attempt.
pub(crate) fn tests(report: &Report) -> String {
    let mut text = String::new();
    for test in &report.tests {
        writeln!(text, "{}", test_line(test)).unwrap();
    }
    text
}

fn test_line(test: &TestResult) -> String {
    let attempts: Vec<String> = test.attempts.iter().map(attempt).collect();
    let flaky = if test.is_flaky() { " (flaky)" } else { "" };
    format!(
        "{} | {} | {} | {}{flaky}",
        test.runner.as_str(),
        test.suite,
        test.name,
        attempts.join(" | "),
    )
}

fn attempt(attempt: &TestAttempt) -> String {
    let mut text = format!(
        "{} line {}",
        attempt.outcome.as_str(),
        attempt.position.line
    );
    if let Some(duration) = attempt.duration {
        write!(text, " {duration:?}").unwrap();
    }
    if !attempt.message.is_empty() {
        write!(text, " {:?}", attempt.message).unwrap();
    }
    let lines = attempt.details.lines().count();
    if lines > 0 {
        write!(text, " +{lines} lines").unwrap();
    }
    text
}
