//! SARIF 2.1.0 (OASIS): one run for each tool, each with the execution as its invocation.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde::Serialize;

use super::source_uri::{directory_uri, source_uri};
use super::subject::ReportSubject;
use crate::diagnostic::{SourceLocation, Tool, ToolDiagnostic};
use crate::output_line::OutputPosition;
use crate::report::Report;

const VERSION: &str = "2.1.0";
/// The name of the working directory among the base URIs.
const BASE: &str = "CWD";
/// The run of an execution without diagnostics.
const NO_TOOL: &str = "ostler";

/// Writes the diagnostics of a report.
///
/// # Errors
/// When the receiver fails.
pub fn write_sarif(
    report: &Report,
    subject: &ReportSubject<'_>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut by_tool: BTreeMap<Tool, Vec<&ToolDiagnostic>> = BTreeMap::new();
    for diagnostic in &report.diagnostics {
        by_tool.entry(diagnostic.tool).or_default().push(diagnostic);
    }
    let mut runs: Vec<Run<'_>> = by_tool
        .iter()
        .map(|(tool, diagnostics)| Run::new(tool.as_str(), diagnostics, report, subject))
        .collect();
    if runs.is_empty() {
        runs.push(Run::new(NO_TOOL, &[], report, subject));
    }
    let log = Log {
        version: VERSION,
        runs,
    };
    serde_json::to_writer_pretty(&mut *out, &log)?;
    out.write_all(b"\n")
}

#[derive(Serialize)]
struct Log<'a> {
    version: &'static str,
    runs: Vec<Run<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Run<'a> {
    tool: ToolObject<'a>,
    automation_details: AutomationDetails,
    invocations: [Invocation; 1],
    original_uri_base_ids: BTreeMap<&'static str, ArtifactLocation>,
    column_kind: &'static str,
    results: Vec<SarifResult<'a>>,
}

#[derive(Serialize)]
struct ToolObject<'a> {
    driver: Driver<'a>,
}

#[derive(Serialize)]
struct Driver<'a> {
    name: &'static str,
    rules: Vec<Rule<'a>>,
}

#[derive(Serialize)]
struct Rule<'a> {
    id: &'a str,
}

#[derive(Serialize)]
struct AutomationDetails {
    id: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Invocation {
    command_line: String,
    execution_successful: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code_description: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_signal_number: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_signal_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    start_time_utc: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    end_time_utc: Option<String>,
    working_directory: ArtifactLocation,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_execution_notifications: Vec<Notification>,
    properties: InvocationProperties,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct InvocationProperties {
    execution_id: String,
}

#[derive(Serialize)]
struct Notification {
    level: &'static str,
    message: Message<String>,
}

#[derive(Serialize)]
struct Message<T> {
    text: T,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ArtifactLocation {
    uri: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    uri_base_id: Option<&'static str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SarifResult<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    rule_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rule_index: Option<usize>,
    level: &'static str,
    message: Message<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    locations: Vec<Location>,
    properties: ResultProperties,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ResultProperties {
    /// Where in the output of the execution it was printed.
    output: OutputPosition,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Location {
    physical_location: PhysicalLocation,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PhysicalLocation {
    artifact_location: ArtifactLocation,
    #[serde(skip_serializing_if = "Option::is_none")]
    region: Option<Region>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Region {
    start_line: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    start_column: Option<u32>,
}

impl<'a> Run<'a> {
    fn new(
        tool: &'static str,
        diagnostics: &[&'a ToolDiagnostic],
        report: &Report,
        subject: &ReportSubject<'_>,
    ) -> Self {
        let ids = diagnostics.iter().filter_map(|one| one.rule.as_deref());
        let mut rules: BTreeMap<&str, usize> = ids.map(|id| (id, 0)).collect();
        for (index, place) in rules.values_mut().enumerate() {
            *place = index;
        }
        let results = diagnostics
            .iter()
            .map(|diagnostic| SarifResult::new(diagnostic, &rules, &subject.cwd));
        Self {
            automation_details: AutomationDetails {
                id: format!("execution/{}", subject.id),
            },
            invocations: [Invocation::new(report, subject)],
            original_uri_base_ids: BTreeMap::from([(BASE, working_directory(subject))]),
            column_kind: "unicodeCodePoints",
            results: results.collect(),
            tool: ToolObject {
                driver: Driver {
                    name: tool,
                    rules: rules.into_keys().map(|id| Rule { id }).collect(),
                },
            },
        }
    }
}

impl Invocation {
    fn new(report: &Report, subject: &ReportSubject<'_>) -> Self {
        let ending = subject.ending;
        let signal = ending.and_then(|ending| ending.signal);
        Self {
            command_line: subject.command.clone(),
            execution_successful: ending.is_some_and(ostler_model::Termination::is_success),
            exit_code: ending.and_then(|ending| ending.code),
            exit_code_description: ending.map(ostler_model::Termination::describe),
            exit_signal_number: signal.map(|signal| signal.number()),
            exit_signal_name: signal.map(|signal| signal.to_string()),
            start_time_utc: subject.started_at.map(|at| at.to_string()),
            end_time_utc: subject.ended_at.map(|at| at.to_string()),
            working_directory: working_directory(subject),
            tool_execution_notifications: notifications(report, subject),
            properties: InvocationProperties {
                execution_id: subject.id.to_string(),
            },
        }
    }
}

/// What a reader must know about the completeness of the results.
fn notifications(report: &Report, subject: &ReportSubject<'_>) -> Vec<Notification> {
    let running = subject.ending.is_none();
    let running = running.then(|| ("note", "the execution has not ended".to_owned()));
    let omitted = report.omitted_diagnostics;
    let omitted = (omitted > 0).then(|| {
        let text = format!("{omitted} more diagnostics are beyond the limits of a report");
        ("warning", text)
    });
    let missing = subject.missing_bytes;
    let missing = (missing > 0).then(|| {
        let text = format!("{missing} bytes of output are gone and were not searched");
        ("warning", text)
    });
    [running, omitted, missing]
        .into_iter()
        .flatten()
        .map(|(level, text)| Notification {
            level,
            message: Message { text },
        })
        .collect()
}

fn working_directory(subject: &ReportSubject<'_>) -> ArtifactLocation {
    ArtifactLocation {
        uri: directory_uri(&subject.cwd),
        uri_base_id: None,
    }
}

impl<'a> SarifResult<'a> {
    fn new(diagnostic: &'a ToolDiagnostic, rules: &BTreeMap<&str, usize>, cwd: &str) -> Self {
        let rule_id = diagnostic.rule.as_deref();
        let location = diagnostic.location.as_ref();
        Self {
            rule_id,
            rule_index: rule_id.and_then(|id| rules.get(id).copied()),
            level: diagnostic.severity.as_str(),
            message: Message {
                text: &diagnostic.message,
            },
            locations: location
                .map(|place| Location::new(place, cwd))
                .into_iter()
                .collect(),
            properties: ResultProperties {
                output: diagnostic.position,
            },
        }
    }
}

impl Location {
    fn new(location: &SourceLocation, cwd: &str) -> Self {
        let source = source_uri(cwd, &location.file);
        // Lines and columns of SARIF begin at 1.
        let number = |number: Option<u32>| number.filter(|number| *number > 0);
        Self {
            physical_location: PhysicalLocation {
                artifact_location: ArtifactLocation {
                    uri: source.uri,
                    uri_base_id: source.is_relative.then_some(BASE),
                },
                region: number(location.line).map(|start_line| Region {
                    start_line,
                    start_column: number(location.column),
                }),
            },
        }
    }
}
