//! All parsers of test results.

use super::cargo_test::CargoTestParser;
use super::go_test::GoTestParser;
use super::jest::JestParser;
use super::nextest::NextestParser;
use super::pytest::PytestParser;
use super::tap::TapParser;
use super::unittest::UnittestParser;
use super::vitest::VitestParser;
use crate::output_line::PlainLine;
use crate::report_builder::ReportBuilder;

/// The parsers of an execution.
#[derive(Debug, Default)]
pub(crate) struct TestParsers {
    cargo_test: CargoTestParser,
    nextest: NextestParser,
    pytest: PytestParser,
    go_test: GoTestParser,
    jest: JestParser,
    vitest: VitestParser,
    tap: TapParser,
    unittest: UnittestParser,
}

impl TestParsers {
    pub(crate) fn line(&mut self, line: &PlainLine<'_>, report: &mut ReportBuilder) {
        self.nextest.line(line, report);
        // nextest prints the output of the test programs that it ran.
        if !self.nextest.is_active() {
            self.cargo_test.line(line, report);
        }
        self.pytest.line(line, report);
        self.go_test.line(line, report);
        self.jest.line(line, report);
        self.vitest.line(line, report);
        self.tap.line(line, report);
        self.unittest.line(line, report);
    }

    /// Reports what the parsers still hold.
    pub(crate) fn finish(&mut self, report: &mut ReportBuilder) {
        self.nextest.finish(report);
        self.cargo_test.finish(report);
        self.go_test.finish(report);
        self.jest.finish(report);
        self.vitest.finish(report);
        self.tap.finish(report);
        self.unittest.finish(report);
    }
}
