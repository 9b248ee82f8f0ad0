//! Results of tests.

use std::time::Duration;

use serde::Serialize;

use crate::output_line::OutputPosition;

/// A test runner whose output is recognised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TestRunner {
    /// `cargo test`, and the test programs it builds.
    CargoTest,
    /// `cargo nextest run`.
    Nextest,
    /// pytest: `-v`, and the short summary.
    Pytest,
    /// `go test`.
    GoTest,
    /// Jest, default and verbose reporter.
    Jest,
    /// Vitest, default and verbose reporter.
    Vitest,
    /// The Test Anything Protocol: `node --test`, `prove`.
    Tap,
    /// Python's unittest.
    Unittest,
}

impl TestRunner {
    /// Its name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::CargoTest => "cargo-test",
            Self::Nextest => "nextest",
            Self::Pytest => "pytest",
            Self::GoTest => "go-test",
            Self::Jest => "jest",
            Self::Vitest => "vitest",
            Self::Tap => "tap",
            Self::Unittest => "unittest",
        }
    }
}

/// How a test ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TestOutcome {
    /// As expected; also a failure that was expected.
    Passed,
    /// A check failed.
    Failed,
    /// It could not be carried out: a broken fixture, a crash, a timeout.
    Error,
    /// It was not run.
    Skipped,
}

impl TestOutcome {
    /// Its word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::Error => "error",
            Self::Skipped => "skipped",
        }
    }

    /// Whether the test failed or could not be carried out.
    #[must_use]
    pub const fn is_failure(self) -> bool {
        matches!(self, Self::Failed | Self::Error)
    }
}

/// One run of a test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestAttempt {
    /// How it ended.
    pub outcome: TestOutcome,
    /// How long it took, where that was printed.
    pub duration: Option<Duration>,
    /// Why it failed or was skipped, in one line; empty where that was not printed.
    pub message: String,
    /// What was printed about its failure.
    pub details: String,
    /// Where its result was printed.
    pub position: OutputPosition,
}

/// A test with its attempts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestResult {
    /// The runner.
    pub runner: TestRunner,
    /// The file, binary, package or class it belongs to; empty where none was printed.
    pub suite: String,
    /// Its name within the suite.
    pub name: String,
    /// Its attempts, oldest first; at least one.
    pub attempts: Vec<TestAttempt>,
}

impl TestResult {
    /// The last attempt. Its outcome is the outcome of the test.
    ///
    /// # Panics
    /// Where the test has no attempt; no collector returns such a one.
    #[must_use]
    pub fn last(&self) -> &TestAttempt {
        self.attempts.last().expect("a test has an attempt")
    }

    /// How the test ended: as its last attempt did.
    #[must_use]
    pub fn outcome(&self) -> TestOutcome {
        self.last().outcome
    }

    /// Whether it failed and passed at a later attempt.
    #[must_use]
    pub fn is_flaky(&self) -> bool {
        let failed_once = || self.attempts.iter().any(|one| one.outcome.is_failure());
        self.outcome() == TestOutcome::Passed && failed_once()
    }
}
