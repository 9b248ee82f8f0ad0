//! `ostler report`.

use std::collections::HashMap;

use clap::Args;
use hyper::Method;
use ostler_api::report::{
    DiagnosticBody, DiagnosticCountsBody, OutputPositionBody, ReportBody, ReportTestBody,
    ReportTestCountsBody,
};
use ostler_model::StreamName;

use super::ids;
use crate::client::RequestBody;
use crate::context::{CliContext, block_on};
use crate::error::{CommandError, CommandResult};
use crate::output::{StdoutWriter, Style, StyledLine, TextTable, cells, line, print_json};

/// Characters of a message in a table.
const MESSAGE_CHARS: usize = 100;

/// What `report` takes.
#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// Which execution
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// At most so many failed tests, and so many diagnostics
    #[arg(short = 'n', long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(0..=10_000))]
    limit: u32,
    /// As JSON
    #[arg(long)]
    json: bool,
}

/// Shows which tests failed, and what compilers and linters reported.
///
/// # Errors
/// When the daemon cannot be reached, or there is no such execution.
pub(crate) fn run(context: &CliContext, args: &ReportArgs) -> CommandResult {
    let client = context.client();
    let path = ids::path(&args.id, &format!("/report?limit={}", args.limit));
    let report: ReportBody = block_on(async {
        match client.call(Method::GET, &path, RequestBody::None).await {
            Ok(report) => Ok(report),
            Err(error) => Err(ids::suggest(&client, &args.id, error).await),
        }
    })?;
    if args.json {
        print_json(&report)?;
        return Ok(0);
    }
    print(&report, Style::of_stdout(&context.env))?;
    Ok(0)
}

fn print(report: &ReportBody, style: Style) -> Result<(), CommandError> {
    let mut out = StdoutWriter::new();
    if !report.finished {
        out.write_line(line!["It runs: more may be printed."])?;
    }
    if report.missing_bytes > 0 {
        let missing = report.missing_bytes;
        out.write_line(line![format!(
            "{missing} bytes of its output are gone and were not searched."
        )])?;
    }
    out.write_line(line![describe_tests(&report.tests)])?;
    if !report.failed_tests.is_empty() {
        test_table(&report.failed_tests, style).print(&mut out)?;
    }
    out.write_line(line![describe_diagnostics(&report.diagnostic_counts)])?;
    for diagnostics in by_file(&report.diagnostics) {
        let file = diagnostics.first().and_then(|one| one.file.as_deref());
        out.write_line(line![file.unwrap_or("no file")])?;
        for diagnostic in diagnostics {
            out.write_line(diagnostic_line(diagnostic, style))?;
        }
    }
    out.flush()
}

/// `8 tests: 5 passed (1 of them flaky), 2 failed, 1 skipped`.
fn describe_tests(counts: &ReportTestCountsBody) -> String {
    if counts.total == 0 {
        return "No test results.".to_owned();
    }
    let flaky = match counts.flaky {
        0 => String::new(),
        flaky => format!(" ({flaky} of them flaky)"),
    };
    let passed = format!("{} passed{flaky}", counts.passed);
    let others = [
        (counts.failed, "failed"),
        (counts.errors, "could not be carried out"),
        (counts.skipped, "skipped"),
        (counts.omitted, "more are beyond the limit"),
    ];
    let others = others.into_iter().filter(|(number, _)| *number > 0);
    let others = others.map(|(number, what)| format!("{number} {what}"));
    let parts: Vec<String> = std::iter::once(passed).chain(others).collect();
    format!("{}: {}", counted(counts.total, "test"), parts.join(", "))
}

fn describe_diagnostics(counts: &DiagnosticCountsBody) -> String {
    let parts = [
        (counts.errors, "error"),
        (counts.warnings, "warning"),
        (counts.notes, "note"),
    ];
    let parts = parts.into_iter().filter(|(number, _)| *number > 0);
    let mut parts: Vec<String> = parts.map(|(number, what)| counted(number, what)).collect();
    if counts.omitted > 0 {
        parts.push(format!("{} more are beyond the limit", counts.omitted));
    }
    if parts.is_empty() {
        return "No diagnostics.".to_owned();
    }
    parts.join(", ")
}

fn counted(number: u64, what: &str) -> String {
    match number {
        1 => format!("1 {what}"),
        _ => format!("{number} {what}s"),
    }
}

fn test_table(tests: &[ReportTestBody], style: Style) -> TextTable {
    let mut table = TextTable::new(&["OUTCOME", "SUITE", "TEST", "OUTPUT", "MESSAGE"]);
    for test in tests {
        let outcome = match test.outcome.as_str() {
            "passed" => style.severity("flaky"),
            outcome => style.severity(outcome),
        };
        let suite = if test.suite.is_empty() {
            &test.runner
        } else {
            &test.suite
        };
        table.push_row(cells![
            outcome,
            suite,
            &test.name,
            describe_position(&test.output),
            &test.message
        ]);
    }
    table.shorten("MESSAGE", MESSAGE_CHARS);
    table
}

/// The diagnostics of each file, in the order of the first of each.
fn by_file(diagnostics: &[DiagnosticBody]) -> Vec<Vec<&DiagnosticBody>> {
    let mut groups: Vec<Vec<&DiagnosticBody>> = Vec::new();
    let mut indices = HashMap::new();
    for diagnostic in diagnostics {
        let index = *indices.entry(&diagnostic.file).or_insert(groups.len());
        match groups.get_mut(index) {
            Some(group) => group.push(diagnostic),
            None => groups.push(vec![diagnostic]),
        }
    }
    groups
}

/// `  4:18  error  rustc E0308: mismatched types (stderr line 10)`.
fn diagnostic_line(diagnostic: &DiagnosticBody, style: Style) -> StyledLine {
    const PLACE_CHARS: usize = 8;
    const SEVERITY_CHARS: usize = 7;
    let numbers = [diagnostic.line, diagnostic.column].into_iter().flatten();
    let place: Vec<String> = numbers.map(|number| number.to_string()).collect();
    let rule = diagnostic.rule.as_deref().map(|rule| format!(" {rule}"));
    line![
        format!("  {:PLACE_CHARS$} ", place.join(":")),
        style.severity(&diagnostic.severity).padded(SEVERITY_CHARS),
        format!(
            "  {}{}: {} ",
            diagnostic.tool,
            rule.unwrap_or_default(),
            diagnostic.message
        ),
        style.dim(&format!("({})", describe_position(&diagnostic.output))),
    ]
}

/// `stderr line 10`.
fn describe_position(position: &OutputPositionBody) -> String {
    let stream = match position.stream {
        StreamName::Stdout => "stdout",
        StreamName::Stderr => "stderr",
        StreamName::Pty => "pty",
        StreamName::Stdin => "stdin",
    };
    format!("{stream} line {}", position.line)
}
