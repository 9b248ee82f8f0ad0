//! JUnit XML: `testsuites` with one `testsuite` for each suite, each valid by Surefire's schema,
//! version 3.0.2. A test that failed and passed at a later attempt has a `flakyFailure`, one that
//! failed again a `rerunFailure`.

use std::collections::HashMap;
use std::io::{self, Write};
use std::time::Duration;

use super::subject::ReportSubject;
use super::xml::XmlText;
use crate::report::{OutcomeCounts, Report};
use crate::test_result::{TestAttempt, TestOutcome, TestResult, TestRunner};

/// Writes the tests of a report.
///
/// # Errors
/// When the receiver fails.
pub fn write_junit(
    report: &Report,
    subject: &ReportSubject<'_>,
    out: &mut dyn Write,
) -> io::Result<()> {
    writeln!(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>")?;
    write!(out, "<testsuites name=\"{}\"", subject.id)?;
    write_counts(&report.test_counts(), duration(&report.tests), out)?;
    writeln!(out, ">")?;
    let suites = suites(&report.tests);
    if suites.is_empty() {
        // So that the execution is named all the same.
        write_suite("ostler", &[], report, subject, out)?;
    }
    for suite in suites {
        write_suite(suite.name, &suite.tests, report, subject, out)?;
    }
    writeln!(out, "</testsuites>")
}

/// The tests of one runner and suite.
struct Suite<'a> {
    name: &'a str,
    tests: Vec<&'a TestResult>,
}

/// The suites in the order of their first tests.
fn suites(tests: &[TestResult]) -> Vec<Suite<'_>> {
    let mut suites: Vec<Suite<'_>> = Vec::new();
    let mut indices: HashMap<(TestRunner, &str), usize> = HashMap::new();
    for test in tests {
        let key = (test.runner, test.suite.as_str());
        let index = *indices.entry(key).or_insert_with(|| {
            suites.push(Suite {
                name: suite_name(test),
                tests: Vec::new(),
            });
            suites.len() - 1
        });
        suites[index].tests.push(test);
    }
    suites
}

/// The name of the suite, or of the runner where it has none.
const fn suite_name(test: &TestResult) -> &str {
    if test.suite.is_empty() {
        test.runner.as_str()
    } else {
        test.suite.as_str()
    }
}

fn write_suite(
    name: &str,
    tests: &[&TestResult],
    report: &Report,
    subject: &ReportSubject<'_>,
    out: &mut dyn Write,
) -> io::Result<()> {
    write!(out, "  <testsuite name=\"{}\"", XmlText(name))?;
    let counts = OutcomeCounts::of(tests.iter().copied());
    write_counts(&counts, duration(tests.iter().copied()), out)?;
    write!(out, " flakes=\"{}\"", counts.flaky)?;
    if let Some(at) = subject.started_at {
        write!(out, " timestamp=\"{at}\"")?;
    }
    writeln!(out, ">")?;
    write_properties(tests, report, subject, out)?;
    for test in tests {
        write_test(test, out)?;
    }
    writeln!(out, "  </testsuite>")
}

fn write_counts(counts: &OutcomeCounts, time: Duration, out: &mut dyn Write) -> io::Result<()> {
    write!(
        out,
        " tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\" time=\"{}\"",
        counts.tests,
        counts.failed,
        counts.errors,
        counts.skipped,
        seconds(time),
    )
}

fn write_properties(
    tests: &[&TestResult],
    report: &Report,
    subject: &ReportSubject<'_>,
    out: &mut dyn Write,
) -> io::Result<()> {
    writeln!(out, "    <properties>")?;
    let mut property = |name: &str, value: &str| {
        let value = XmlText(value);
        writeln!(out, "      <property name=\"{name}\" value=\"{value}\"/>")
    };
    property("ostler.execution", &subject.id.to_string())?;
    property("ostler.command", &subject.command)?;
    match subject.ending {
        Some(ending) => property("ostler.ending", &ending.describe())?,
        None => property("ostler.ending", "has not ended")?,
    }
    if let Some(code) = subject.ending.and_then(|ending| ending.code) {
        property("ostler.exit_code", &code.to_string())?;
    }
    if let Some(test) = tests.first() {
        property("ostler.runner", test.runner.as_str())?;
    }
    if report.omitted_tests > 0 {
        property("ostler.omitted_tests", &report.omitted_tests.to_string())?;
    }
    if subject.missing_bytes > 0 {
        property("ostler.missing_bytes", &subject.missing_bytes.to_string())?;
    }
    writeln!(out, "    </properties>")
}

fn write_test(test: &TestResult, out: &mut dyn Write) -> io::Result<()> {
    let (name, class) = (XmlText(&test.name), XmlText(suite_name(test)));
    // The schema requires a time; one that was not printed is a zero without decimals.
    let time = test.last().duration.map(seconds);
    let time = time.as_deref().unwrap_or("0");
    write!(
        out,
        "    <testcase name=\"{name}\" classname=\"{class}\" time=\"{time}\""
    )?;
    let failures = failures(test);
    if test.outcome() == TestOutcome::Passed && failures.is_empty() {
        return writeln!(out, "/>");
    }
    writeln!(out, ">")?;
    if test.outcome() == TestOutcome::Skipped {
        let message = XmlText(&test.last().message);
        writeln!(out, "      <skipped message=\"{message}\"/>")?;
    } else {
        for failure in failures {
            failure.write(out)?;
        }
        let position = test.last().position;
        writeln!(
            out,
            "      <system-out>The result is at {position} of the execution.</system-out>"
        )?;
    }
    writeln!(out, "    </testcase>")
}

/// The failed attempts in the order of their elements in the schema.
fn failures(test: &TestResult) -> Vec<Failure<'_>> {
    let failed = test
        .attempts
        .iter()
        .filter(|attempt| attempt.outcome.is_failure());
    let mut failures: Vec<Failure<'_>> = failed
        .enumerate()
        .map(|(index, attempt)| Failure {
            element: FailureElement::of(test, attempt, index == 0),
            attempt,
        })
        .collect();
    failures.sort_by_key(|failure| failure.element);
    failures
}

/// The element of a failed attempt, in the order of the schema: the first one of a test that failed
/// is a `failure` or an `error`, as the test; a later one is a `rerun…`; one of a test that passed
/// in the end is a `flaky…`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum FailureElement {
    Failure,
    RerunFailure,
    FlakyFailure,
    Error,
    RerunError,
    FlakyError,
}

impl FailureElement {
    fn of(test: &TestResult, attempt: &TestAttempt, is_first: bool) -> Self {
        let is_error = attempt.outcome == TestOutcome::Error;
        match (test.is_flaky(), is_first, is_error) {
            (true, _, false) => Self::FlakyFailure,
            (true, _, true) => Self::FlakyError,
            (false, false, false) => Self::RerunFailure,
            (false, false, true) => Self::RerunError,
            // The numbers of failures and errors count tests by how they ended.
            (false, true, _) if test.outcome() == TestOutcome::Error => Self::Error,
            (false, true, _) => Self::Failure,
        }
    }

    const fn as_str(self) -> &'static str {
        match self {
            Self::Failure => "failure",
            Self::RerunFailure => "rerunFailure",
            Self::FlakyFailure => "flakyFailure",
            Self::Error => "error",
            Self::RerunError => "rerunError",
            Self::FlakyError => "flakyError",
        }
    }

    /// Whether what was printed is in an element of its own.
    const fn has_stack_trace(self) -> bool {
        !matches!(self, Self::Failure | Self::Error)
    }
}

/// A failed attempt.
struct Failure<'a> {
    element: FailureElement,
    attempt: &'a TestAttempt,
}

impl Failure<'_> {
    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let name = self.element.as_str();
        let message = XmlText(&self.attempt.message);
        let kind = self.attempt.outcome.as_str();
        let details = XmlText(&self.attempt.details);
        write!(out, "      <{name} message=\"{message}\" type=\"{kind}\">")?;
        if self.element.has_stack_trace() {
            write!(out, "<stackTrace>{details}</stackTrace>")?;
        } else {
            write!(out, "{details}")?;
        }
        writeln!(out, "</{name}>")
    }
}

/// The time of the last attempts, as far as it is known.
fn duration<'a>(tests: impl IntoIterator<Item = &'a TestResult>) -> Duration {
    let times = tests.into_iter().filter_map(|test| test.last().duration);
    times.fold(Duration::ZERO, Duration::saturating_add)
}

fn seconds(time: Duration) -> String {
    format!("{:.3}", time.as_secs_f64())
}
