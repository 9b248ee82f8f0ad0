//! Collects what the parsers recognise, within the limits.

use crate::diagnostic::{DiagnosticSeverity, SourceLocation, Tool, ToolDiagnostic};
use crate::limits::{DIAGNOSTICS, MESSAGE_BYTES, MORE_ERRORS, NAME_BYTES, REPORT_BYTES, cut};
use crate::report::Report;

/// A diagnostic by its place in the report; none where it is beyond the limits.
pub(crate) type DiagnosticIndex = Option<usize>;

/// A report that is being made.
#[derive(Debug, Default)]
pub(crate) struct ReportBuilder {
    report: Report,
    /// Bytes of all texts in the report.
    bytes: usize,
}

impl ReportBuilder {
    /// Adds a diagnostic. Its texts are cut.
    pub(crate) fn add_diagnostic(&mut self, diagnostic: ToolDiagnostic) -> DiagnosticIndex {
        let limit = match diagnostic.severity {
            DiagnosticSeverity::Error => DIAGNOSTICS + MORE_ERRORS,
            DiagnosticSeverity::Warning | DiagnosticSeverity::Note => DIAGNOSTICS,
        };
        if self.report.diagnostics.len() >= limit || self.bytes >= REPORT_BYTES {
            self.report.omitted_diagnostics += 1;
            return None;
        }
        let diagnostic = ToolDiagnostic {
            message: self.keep(diagnostic.message.trim(), MESSAGE_BYTES),
            rule: diagnostic.rule.map(|rule| self.keep(&rule, NAME_BYTES)),
            location: diagnostic.location.map(|location| SourceLocation {
                file: self.keep(&location.file, NAME_BYTES),
                ..location
            }),
            ..diagnostic
        };
        self.report.diagnostics.push(diagnostic);
        Some(self.report.diagnostics.len() - 1)
    }

    /// Names the rule of a diagnostic that was printed after it.
    pub(crate) fn set_rule(&mut self, index: DiagnosticIndex, tool: Tool, rule: &str) {
        let rule = self.keep(rule, NAME_BYTES);
        let diagnostic = index.and_then(|index| self.report.diagnostics.get_mut(index));
        if let Some(diagnostic) = diagnostic
            && diagnostic.rule.is_none()
        {
            diagnostic.tool = tool;
            diagnostic.rule = Some(rule);
        }
    }

    /// The number of diagnostics so far.
    pub(crate) const fn diagnostic_count(&self) -> usize {
        self.report.diagnostics.len()
    }

    /// Corrects the tool of the diagnostics from `first` on.
    pub(crate) fn replace_tool(&mut self, first: usize, old: Tool, new: Tool) {
        let later = self.report.diagnostics.iter_mut().skip(first);
        for diagnostic in later.filter(|diagnostic| diagnostic.tool == old) {
            diagnostic.tool = new;
        }
    }

    /// The report.
    pub(crate) fn finish(self) -> Report {
        self.report
    }

    /// A text of the report: cut, and empty where the report has too much of them.
    fn keep(&mut self, text: &str, limit: usize) -> String {
        if self.bytes >= REPORT_BYTES {
            return String::new();
        }
        let text = cut(text, limit).to_owned();
        self.bytes += text.len();
        text
    }
}
