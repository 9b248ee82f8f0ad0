//! rustc, Clippy and Cargo, the form for people: a heading, then ` --> file:line:column`, then
//! notes that name the lint.

use super::location::whole_location;
use crate::diagnostic::{DiagnosticSeverity, SourceLocation, Tool, ToolDiagnostic};
use crate::output_line::{OutputPosition, PlainLine};
use crate::report_builder::{DiagnosticIndex, ReportBuilder};

/// Lines of a heading before its place.
const HEADING_LINES: u8 = 4;

/// How errors of Cargo begin that have no place.
const CARGO_ERRORS: &[&str] = &[
    "could not compile `",
    "could not find `Cargo.toml`",
    "failed to load manifest",
    "failed to parse manifest",
    "failed to resolve: ",
    "failed to run custom build command",
    "failed to select a version",
    "no matching package",
    "no such command: `",
    "package ID specification `",
    "test failed, to rerun pass `",
    "the lock file ",
];

/// Parses such diagnostics.
#[derive(Debug, Default)]
pub(super) struct RustcParser {
    heading: Option<Heading>,
    /// The last diagnostic, which notes speak of.
    last: DiagnosticIndex,
}

#[derive(Debug)]
struct Heading {
    severity: DiagnosticSeverity,
    code: Option<String>,
    message: String,
    position: OutputPosition,
    /// Lines since.
    lines: u8,
}

impl RustcParser {
    pub(super) fn line(&mut self, line: &PlainLine<'_>, report: &mut ReportBuilder) {
        if let Some(heading) = Heading::parse(line) {
            self.last = None;
            self.heading = heading.report_cargo_error(report);
            return;
        }
        let text = line.text.trim_start();
        if let Some(heading) = &mut self.heading {
            heading.lines += 1;
            if let Some(location) = text.strip_prefix("--> ").and_then(whole_location) {
                self.end_heading(location, report);
            } else if heading.lines == HEADING_LINES || text.is_empty() {
                self.heading = None;
            }
            return;
        }
        if self.last.is_none() {
            return;
        }
        if text.is_empty() {
            self.last = None;
        } else if let Some(note) = text.strip_prefix("= ")
            && let Some(rule) = lint_in_note(note)
        {
            let tool = if rule.starts_with("clippy::") {
                Tool::Clippy
            } else {
                Tool::Rustc
            };
            report.set_rule(self.last, tool, &rule);
        }
    }

    fn end_heading(&mut self, location: SourceLocation, report: &mut ReportBuilder) {
        let Some(heading) = self.heading.take() else {
            return;
        };
        self.last = report.add_diagnostic(ToolDiagnostic {
            tool: Tool::Rustc,
            severity: heading.severity,
            rule: heading.code,
            message: heading.message,
            location: Some(location),
            position: heading.position,
        });
    }
}

impl Heading {
    /// `error[E0308]: message`, `warning: message`.
    fn parse(line: &PlainLine<'_>) -> Option<Self> {
        let words = [
            ("error", DiagnosticSeverity::Error),
            ("warning", DiagnosticSeverity::Warning),
        ];
        let (rest, severity) = words
            .into_iter()
            .find_map(|(word, severity)| Some((line.text.strip_prefix(word)?, severity)))?;
        let (code, message) = match rest.strip_prefix('[') {
            Some(rest) => {
                let (code, message) = rest.split_once("]: ")?;
                (Some(code.to_owned()), message)
            }
            None => (None, rest.strip_prefix(": ")?),
        };
        Some(Self {
            severity,
            code,
            message: message.to_owned(),
            position: line.position,
            lines: 0,
        })
    }

    /// Reports an error of Cargo; any other heading is returned.
    fn report_cargo_error(self, report: &mut ReportBuilder) -> Option<Self> {
        let is_cargo = self.severity == DiagnosticSeverity::Error
            && self.code.is_none()
            && CARGO_ERRORS
                .iter()
                .any(|begin| self.message.starts_with(begin));
        if !is_cargo {
            return Some(self);
        }
        report.add_diagnostic(ToolDiagnostic {
            tool: Tool::Cargo,
            severity: self.severity,
            rule: None,
            message: self.message,
            location: None,
            position: self.position,
        });
        None
    }
}

/// The lint that a note names: by its level, by an option, or by the page of Clippy about it.
fn lint_in_note(note: &str) -> Option<String> {
    if note.starts_with("help: for further information visit ") {
        let (page, lint) = note.rsplit_once('#')?;
        return page
            .contains("rust-clippy")
            .then(|| format!("clippy::{lint}"));
    }
    let quoted = note.strip_prefix("note: ").unwrap_or(note);
    let quoted = quoted
        .strip_prefix("requested on the command line with ")
        .unwrap_or(quoted);
    let quoted = quoted.strip_prefix('`')?;
    let (quoted, _) = quoted.split_once('`')?;
    if let Some((_, lint)) = quoted
        .strip_prefix("#[")
        .and_then(|rest| rest.split_once('('))
    {
        return Some(lint.trim_end_matches([')', ']']).to_owned());
    }
    let (option, lint) = quoted.split_once(' ')?;
    matches!(option, "-D" | "-W" | "-F").then(|| lint.replace('-', "_"))
}
