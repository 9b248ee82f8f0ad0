//! What known tools report in the output of a command: the diagnostics of compilers and linters,
//! and the results of tests, as SARIF 2.1.0 and as JUnit XML.
//!
//! * [`ReportCollector`] takes lines of output one at a time and keeps what its parsers recognise,
//!   within the limits of [`limits`]; [`ReportCollector::finish`] returns a [`Report`].
//! * [`write_sarif`] and [`write_junit`] write a [`Report`] with its [`ReportSubject`], the
//!   execution it was found in.
//!
//! The parsers are closed enumerations: [`Tool`] and [`TestRunner`]. Each is a state machine over
//! lines. Everything here is pure: no clock, no file, no environment.
#![forbid(unsafe_code)]

mod collector;
mod diagnostic;
mod diagnostics;
mod failure_text;
pub mod limits;
mod output_line;
mod report;
mod report_builder;
mod test_result;
mod tests;
mod write;

pub use collector::ReportCollector;
pub use diagnostic::{DiagnosticSeverity, SourceLocation, Tool, ToolDiagnostic};
pub use output_line::{OutputPosition, RawLine};
pub use report::{OutcomeCounts, Report};
pub use test_result::{TestAttempt, TestOutcome, TestResult, TestRunner};
pub use write::{ReportSubject, write_junit, write_sarif};
