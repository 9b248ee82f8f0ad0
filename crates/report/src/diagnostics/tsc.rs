//! The TypeScript compiler: `file(line,column): error TS2322: message`, and its form for
//! terminals, `file:line:column - error TS2322: message`.

use super::location::{leading_number, whole_location};
use crate::diagnostic::{DiagnosticSeverity, SourceLocation, Tool, ToolDiagnostic};
use crate::output_line::PlainLine;
use crate::report_builder::ReportBuilder;

/// Parses a line.
pub(super) fn line(line: &PlainLine<'_>, report: &mut ReportBuilder) {
    let kinds = [
        ("error TS", DiagnosticSeverity::Error),
        ("warning TS", DiagnosticSeverity::Warning),
    ];
    for (word, severity) in kinds {
        let Some((place, rest)) = line.text.split_once(word) else {
            continue;
        };
        let Some((number, message)) = leading_number(rest) else {
            continue;
        };
        let Some(message) = message.strip_prefix(": ") else {
            continue;
        };
        let location = match place {
            "" => None,
            place => match source_location(place) {
                Some(location) => Some(location),
                None => continue,
            },
        };
        report.add_diagnostic(ToolDiagnostic {
            tool: Tool::Tsc,
            severity,
            rule: Some(format!("TS{number}")),
            message: message.to_owned(),
            location,
            position: line.position,
        });
        return;
    }
}

fn source_location(place: &str) -> Option<SourceLocation> {
    if let Some(place) = place.strip_suffix(" - ") {
        return whole_location(place);
    }
    let (file, numbers) = place.strip_suffix("): ")?.rsplit_once('(')?;
    let (line, column) = numbers.split_once(',')?;
    Some(SourceLocation {
        file: file.to_owned(),
        line: Some(line.parse().ok()?),
        column: Some(column.parse().ok()?),
    })
}
