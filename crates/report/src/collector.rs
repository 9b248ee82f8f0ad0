//! Feeds lines to every parser.

use ostler_model::StreamName;

use crate::diagnostics::DiagnosticParsers;
use crate::output_line::{PlainLine, RawLine, plain_text};
use crate::report::Report;
use crate::report_builder::ReportBuilder;
use crate::tests::TestParsers;

/// Takes the lines of an output in order and keeps what is recognised.
#[derive(Debug, Default)]
pub struct ReportCollector {
    /// Those of stdout, stderr and terminal: a diagnostic has several lines, all of one stream.
    diagnostics: [DiagnosticParsers; 3],
    /// Runners print headings and results on different streams.
    tests: TestParsers,
    report: ReportBuilder,
}

impl ReportCollector {
    /// Takes a line. Recorded input is ignored.
    pub fn line(&mut self, line: &RawLine<'_>) {
        let stream = match line.position.stream {
            StreamName::Stdout => 0,
            StreamName::Stderr => 1,
            StreamName::Pty => 2,
            StreamName::Stdin => return,
        };
        let text = plain_text(line.text);
        let line = PlainLine {
            position: line.position,
            text: &text,
        };
        self.diagnostics[stream].line(&line, &mut self.report);
        self.tests.line(&line, &mut self.report);
    }

    /// The report, after the last line.
    #[must_use]
    pub fn finish(mut self) -> Report {
        self.tests.finish(&mut self.report);
        self.report.finish()
    }
}
