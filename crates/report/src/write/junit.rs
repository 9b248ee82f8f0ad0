//! JUnit XML: `testsuites` with one `testsuite` for each suite. A test that failed and passed at a
//! later attempt has a `flakyFailure`, one that failed again a `rerunFailure`, as Surefire's schema
//! names them.

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
    write!(out, "    <testcase name=\"{name}\" classname=\"{class}\"")?;
    if let Some(time) = test.last().duration {
        write!(out, " time=\"{}\"", seconds(time))?;
    }
    let failures = test
        .attempts
        .iter()
        .filter(|attempt| attempt.outcome.is_failure());
    let failures: Vec<&TestAttempt> = failures.collect();
    if test.outcome() == TestOutcome::Passed && failures.is_empty() {
        return writeln!(out, "/>");
    }
    writeln!(out, ">")?;
    if test.outcome() == TestOutcome::Skipped {
        let message = XmlText(&test.last().message);
        writeln!(out, "      <skipped message=\"{message}\"/>")?;
    } else {
        write_position(test.last(), out)?;
        for (index, failure) in failures.iter().enumerate() {
            let element = FailureElement::of(test, index == 0);
            write_failure(element, test.outcome(), failure, out)?;
        }
    }
    writeln!(out, "    </testcase>")
}

/// Where in the output of the execution the result was printed.
fn write_position(attempt: &TestAttempt, out: &mut dyn Write) -> io::Result<()> {
    let position = attempt.position;
    writeln!(
        out,
        "      <properties><property name=\"ostler.output\" value=\"{position}\"/></properties>",
    )
}

/// What a failed attempt is to its test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FailureElement {
    /// The first one of a test that failed.
    First,
    /// A later one.
    Rerun,
    /// One of a test that passed in the end.
    Flaky,
}

impl FailureElement {
    fn of(test: &TestResult, is_first: bool) -> Self {
        match (test.is_flaky(), is_first) {
            (true, _) => Self::Flaky,
            (false, true) => Self::First,
            (false, false) => Self::Rerun,
        }
    }
}

fn write_failure(
    element: FailureElement,
    test: TestOutcome,
    attempt: &TestAttempt,
    out: &mut dyn Write,
) -> io::Result<()> {
    // The numbers of failures and errors count tests by how they ended.
    let is_error = match element {
        FailureElement::First => test == TestOutcome::Error,
        FailureElement::Rerun | FailureElement::Flaky => attempt.outcome == TestOutcome::Error,
    };
    let name = match (element, is_error) {
        (FailureElement::First, false) => "failure",
        (FailureElement::First, true) => "error",
        (FailureElement::Rerun, false) => "rerunFailure",
        (FailureElement::Rerun, true) => "rerunError",
        (FailureElement::Flaky, false) => "flakyFailure",
        (FailureElement::Flaky, true) => "flakyError",
    };
    let message = XmlText(&attempt.message);
    let kind = attempt.outcome.as_str();
    write!(out, "      <{name} message=\"{message}\" type=\"{kind}\">")?;
    let details = XmlText(&attempt.details);
    match element {
        FailureElement::First => write!(out, "{details}")?,
        FailureElement::Rerun | FailureElement::Flaky => {
            write!(out, "<stackTrace>{details}</stackTrace>")?;
        }
    }
    writeln!(out, "</{name}>")
}

/// The time of the last attempts, as far as it is known.
fn duration<'a>(tests: impl IntoIterator<Item = &'a TestResult>) -> Duration {
    let times = tests.into_iter().filter_map(|test| test.last().duration);
    times.fold(Duration::ZERO, Duration::saturating_add)
}

fn seconds(time: Duration) -> String {
    format!("{:.6}", time.as_secs_f64())
}
