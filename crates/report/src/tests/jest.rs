//! Jest, default and verbose reporter.

use std::collections::HashMap;

use super::durations::split_duration_in_parens;
use crate::failure_text::FailureText;
use crate::limits::{NAME_BYTES, PENDING, cut};
use crate::output_line::{OutputPosition, PlainLine};
use crate::report_builder::{ReportBuilder, TestId};
use crate::test_result::{TestAttempt, TestOutcome, TestRunner};

/// Between the names of nested blocks.
const SEPARATOR: &str = " › ";
const EXTENSIONS: &[&str] = &["js", "ts", "jsx", "tsx", "mjs", "cjs", "mts", "cts", "vue"];
/// The deepest nesting of blocks.
const LEVELS: usize = 32;

/// Parses its output.
#[derive(Debug, Default)]
pub(super) struct JestParser {
    /// The file whose results are printed; empty outside.
    file: String,
    blocks: Vec<Block>,
    /// How often each name was seen in the file: nothing says that they are unique.
    names: HashMap<String, u32>,
    failure: Option<Failure>,
    text: FailureText,
    /// Whether failures are being repeated.
    is_summary: bool,
}

/// A `describe` block.
#[derive(Debug)]
struct Block {
    indent: usize,
    name: String,
}

#[derive(Debug)]
struct Failure {
    name: String,
    position: OutputPosition,
}

impl JestParser {
    pub(super) fn line(&mut self, line: &PlainLine<'_>, report: &mut ReportBuilder) {
        let text = line.text;
        if text.starts_with("Test Suites: ") {
            self.end_failure(report);
            *self = Self::default();
        } else if text.starts_with("Summary of all failing tests") {
            self.end_failure(report);
            self.is_summary = true;
        } else if self.is_summary {
            // Failures that were already printed.
        } else if let Some(file) = file_heading(text) {
            self.end_failure(report);
            *self = Self::default();
            file.clone_into(&mut self.file);
        } else if self.file.is_empty() {
            // Output of other programs.
        } else if let Some(name) = text.strip_prefix("  ● ") {
            self.end_failure(report);
            self.begin_failure(name, line.position);
        } else if self.failure.is_some() {
            self.text.push(text.strip_prefix("    ").unwrap_or(text));
        } else {
            self.tree_line(line, report);
        }
    }

    pub(super) fn finish(&mut self, report: &mut ReportBuilder) {
        self.end_failure(report);
    }

    fn tree_line(&mut self, line: &PlainLine<'_>, report: &mut ReportBuilder) {
        let text = line.text.trim_start();
        let indent = line.text.len() - text.len();
        if indent < 2 || text.is_empty() {
            return;
        }
        self.blocks.retain(|block| block.indent < indent);
        let Some((outcome, rest)) = symbol(text) else {
            if self.blocks.len() < LEVELS {
                let name = cut(text, NAME_BYTES).to_owned();
                self.blocks.push(Block { indent, name });
            }
            return;
        };
        let (title, duration) = split_duration_in_parens(rest);
        let blocks = self.blocks.iter().map(|block| block.name.as_str());
        let name = blocks.chain([title]).collect::<Vec<_>>().join(SEPARATOR);
        let name = cut(&name, NAME_BYTES);
        let attempt = TestAttempt {
            outcome,
            duration,
            message: String::new(),
            details: String::new(),
            position: line.position,
        };
        let scope = self.scope_of(name);
        let id = TestId {
            runner: TestRunner::Jest,
            suite: &self.file,
            scope: &scope,
            name,
        };
        report.add_attempt(id, attempt);
    }

    /// The scope of a name: the file, and a number where the name was seen in it before.
    fn scope_of(&mut self, name: &str) -> String {
        if self.names.len() == PENDING {
            self.names.clear();
        }
        let times = self.names.entry(name.to_owned()).or_default();
        *times += 1;
        match *times {
            1 => self.file.clone(),
            times => format!("{} #{times}", self.file),
        }
    }

    fn begin_failure(&mut self, name: &str, position: OutputPosition) {
        let name = cut(name, NAME_BYTES).to_owned();
        self.failure = Some(Failure { name, position });
    }

    fn end_failure(&mut self, report: &mut ReportBuilder) {
        let text = std::mem::take(&mut self.text);
        // Under the heading `Console` is what the tests printed.
        let failure = self.failure.take();
        let Some(failure) = failure.filter(|failure| failure.name != "Console") else {
            return;
        };
        let id = TestId {
            runner: TestRunner::Jest,
            suite: &self.file,
            scope: &self.file,
            name: &failure.name,
        };
        let (message, details) = (text.first_line(""), text.text());
        if self.names.contains_key(&failure.name) {
            report.explain(id, message, details);
            return;
        }
        let outcome = match failure.name.as_str() {
            "Test suite failed to run" => TestOutcome::Error,
            _ => TestOutcome::Failed,
        };
        let attempt = TestAttempt {
            outcome,
            duration: None,
            message: message.to_owned(),
            details: details.to_owned(),
            position: failure.position,
        };
        report.add_attempt(id, attempt);
    }
}

/// The file of a heading `FAIL src/sum.test.js (5.1 s)`.
fn file_heading(text: &str) -> Option<&str> {
    let text = text.trim_start();
    let rest = text.strip_prefix("PASS ").or(text.strip_prefix("FAIL "))?;
    if rest.contains([' ', '>']) && rest.contains(" > ") {
        // Vitest.
        return None;
    }
    let (rest, _) = split_duration_in_parens(rest);
    let file = rest.split_whitespace().next_back()?;
    let (_, extension) = file.rsplit_once('.')?;
    EXTENSIONS.contains(&extension).then_some(file)
}

/// The outcome that the symbol before a name means, and the name.
fn symbol(text: &str) -> Option<(TestOutcome, &str)> {
    let (symbol, rest) = text.split_once(' ')?;
    Some(match symbol {
        "✓" | "√" => (TestOutcome::Passed, rest),
        "✕" | "×" => (TestOutcome::Failed, rest),
        "○" => (
            TestOutcome::Skipped,
            rest.strip_prefix("skipped ").unwrap_or(rest),
        ),
        "✎" => (
            TestOutcome::Skipped,
            rest.strip_prefix("todo ").unwrap_or(rest),
        ),
        _ => return None,
    })
}
