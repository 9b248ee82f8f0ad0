//! All parsers of diagnostics.

use super::eslint::EslintParser;
use super::located_line::LocatedLineParser;
use super::rustc::RustcParser;
use super::tsc;
use crate::output_line::PlainLine;
use crate::report_builder::ReportBuilder;

/// The parsers of one stream.
#[derive(Debug, Default)]
pub(crate) struct DiagnosticParsers {
    rustc: RustcParser,
    located: LocatedLineParser,
    eslint: EslintParser,
}

impl DiagnosticParsers {
    pub(crate) fn line(&mut self, line: &PlainLine<'_>, report: &mut ReportBuilder) {
        self.rustc.line(line, report);
        self.located.line(line, report);
        self.eslint.line(line, report);
        tsc::line(line, report);
    }
}
