//! `ESLint`, format `stylish`: the path of a file, then one indented line for each problem.

use super::location::leading_number;
use crate::diagnostic::{DiagnosticSeverity, SourceLocation, Tool, ToolDiagnostic};
use crate::limits::NAME_BYTES;
use crate::output_line::PlainLine;
use crate::report_builder::ReportBuilder;

/// Parses such blocks.
#[derive(Debug, Default)]
pub(super) struct EslintParser {
    /// The file of the block; empty outside of one.
    file: String,
}

impl EslintParser {
    pub(super) fn line(&mut self, line: &PlainLine<'_>, report: &mut ReportBuilder) {
        let text = line.text;
        if !text.starts_with(' ') {
            self.file.clear();
            let is_path = text.contains(['/', '\\', '.']) && text.len() <= NAME_BYTES;
            if is_path && text.trim_end() == text {
                self.file.push_str(text);
            }
            return;
        }
        if self.file.is_empty() {
            return;
        }
        match Problem::parse(text) {
            Some(problem) => {
                report.add_diagnostic(ToolDiagnostic {
                    tool: Tool::Eslint,
                    severity: problem.severity,
                    rule: problem.rule.map(str::to_owned),
                    message: problem.message.to_owned(),
                    location: Some(SourceLocation {
                        file: self.file.clone(),
                        line: Some(problem.line),
                        column: Some(problem.column),
                    }),
                    position: line.position,
                });
            }
            None => self.file.clear(),
        }
    }
}

/// A line of a block: `  12:5  error  message  rule`.
struct Problem<'a> {
    line: u32,
    column: u32,
    severity: DiagnosticSeverity,
    message: &'a str,
    rule: Option<&'a str>,
}

impl<'a> Problem<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let (line, rest) = leading_number(text.trim_start())?;
        let (column, rest) = leading_number(rest.strip_prefix(':')?)?;
        let (word, rest) = rest.trim_start().split_once(' ')?;
        let severity = match word {
            "error" => DiagnosticSeverity::Error,
            "warning" => DiagnosticSeverity::Warning,
            _ => return None,
        };
        let rest = rest.trim();
        // A parsing error has no rule.
        let (message, rule) = match rest.rsplit_once("  ") {
            Some((message, rule)) if !rule.contains(' ') => (message.trim_end(), Some(rule)),
            Some(_) | None => (rest, None),
        };
        Some(Self {
            line,
            column,
            severity,
            message,
            rule,
        })
    }
}
