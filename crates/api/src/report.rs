//! What tools reported in the output of an execution.

use ostler_model::StreamName;
use serde::{Deserialize, Serialize};

/// The test results and diagnostics in the output of an execution.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportBody {
    /// The short id of the execution.
    pub id: String,
    /// Whether the execution has ended; otherwise more may be printed.
    pub finished: bool,
    /// How many tests ended how.
    pub tests: ReportTestCountsBody,
    /// Tests that failed or could not be carried out, then flaky ones; at most `limit`.
    pub failed_tests: Vec<ReportTestBody>,
    /// How many diagnostics there are.
    pub diagnostic_counts: DiagnosticCountsBody,
    /// Errors, then warnings, then notes; at most `limit`.
    pub diagnostics: Vec<DiagnosticBody>,
    /// Bytes of output that are gone and were not searched.
    #[serde(default, skip_serializing_if = "super::page::is_zero")]
    pub missing_bytes: u64,
}

/// How many tests ended how.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportTestCountsBody {
    /// All tests that were named.
    pub total: u64,
    /// Those that passed.
    pub passed: u64,
    /// Those with a check that failed.
    pub failed: u64,
    /// Those that could not be carried out.
    pub errors: u64,
    /// Those that were not run.
    pub skipped: u64,
    /// Those that failed and passed at a later attempt; they count as passed, too.
    pub flaky: u64,
    /// Results beyond the limits of a report, not counted in the others.
    pub omitted: u64,
}

/// A test that failed at one attempt at least.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportTestBody {
    /// The test runner, for example `pytest`.
    pub runner: String,
    /// The file, binary, package or class; empty where none was printed.
    pub suite: String,
    /// The name of the test.
    pub name: String,
    /// `failed`, `error` or `passed`, as the last attempt ended.
    pub outcome: String,
    /// The number of its attempts.
    pub attempts: u64,
    /// Why it failed, in one line; empty where that was not printed.
    pub message: String,
    /// Where its last result was printed.
    pub output: OutputPositionBody,
}

/// How many diagnostics there are of each severity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiagnosticCountsBody {
    /// Errors.
    pub errors: u64,
    /// Warnings.
    pub warnings: u64,
    /// Notes.
    pub notes: u64,
    /// Diagnostics beyond the limits of a report, not counted in the others.
    pub omitted: u64,
}

/// A diagnostic of a compiler or a linter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiagnosticBody {
    /// The tool, for example `rustc`.
    pub tool: String,
    /// `error`, `warning` or `note`.
    pub severity: String,
    /// The code or the name of the rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// The message in one line.
    pub message: String,
    /// The file, as the tool printed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line in the file, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// The column, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
    /// Where in the output it was printed.
    pub output: OutputPositionBody,
}

/// Where a line is in the output of an execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputPositionBody {
    /// The stream.
    pub stream: StreamName,
    /// The number of the line within the stream, from 1.
    pub line: u64,
    /// The offset of its first byte in the output.
    pub offset: u64,
}
