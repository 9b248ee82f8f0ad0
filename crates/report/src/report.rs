//! What was recognised in an output.

use serde::Serialize;

use crate::diagnostic::{DiagnosticSeverity, ToolDiagnostic};
use crate::test_result::{TestOutcome, TestResult};

/// The diagnostics and test results of an output.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Report {
    /// Diagnostics in the order in which they were printed.
    pub diagnostics: Vec<ToolDiagnostic>,
    /// Tests in the order of their first results.
    pub tests: Vec<TestResult>,
    /// Diagnostics beyond the [limits](crate::limits).
    pub omitted_diagnostics: u64,
    /// Results of tests beyond the [limits](crate::limits).
    pub omitted_tests: u64,
}

/// How many tests ended how. A flaky test counts as passed, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct OutcomeCounts {
    /// All tests.
    pub tests: u64,
    /// Those that passed.
    pub passed: u64,
    /// Those with a check that failed.
    pub failed: u64,
    /// Those that could not be carried out.
    pub errors: u64,
    /// Those that were not run.
    pub skipped: u64,
    /// Those that failed and passed at a later attempt.
    pub flaky: u64,
}

impl OutcomeCounts {
    /// Counts tests.
    pub fn of<'a>(tests: impl IntoIterator<Item = &'a TestResult>) -> Self {
        let mut counts = Self::default();
        for test in tests {
            counts.tests += 1;
            counts.flaky += u64::from(test.is_flaky());
            match test.outcome() {
                TestOutcome::Passed => counts.passed += 1,
                TestOutcome::Failed => counts.failed += 1,
                TestOutcome::Error => counts.errors += 1,
                TestOutcome::Skipped => counts.skipped += 1,
            }
        }
        counts
    }
}

impl Report {
    /// How many tests ended how.
    #[must_use]
    pub fn test_counts(&self) -> OutcomeCounts {
        OutcomeCounts::of(&self.tests)
    }

    /// The number of diagnostics of a severity.
    #[must_use]
    pub fn count(&self, severity: DiagnosticSeverity) -> u64 {
        let of_severity = |one: &&ToolDiagnostic| one.severity == severity;
        self.diagnostics.iter().filter(of_severity).count() as u64
    }
}
