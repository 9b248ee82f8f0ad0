//! Third-party clients on every transport: the official TypeScript clients and the Inspector. The
//! official Python client is in the step `python`.

use anyhow::Result;

use super::plan::StepContext;
use crate::test_counts::TestCounts;
use crate::{setup, shell};

pub(super) fn run(context: StepContext<'_>) -> Result<TestCounts> {
    let workspace = context.workspace;
    let node = setup::node(workspace)?;
    let mut test = shell::command(&node, &workspace.clients());
    test.args(["--test", "--test-reporter=tap", "--test-concurrency=2"])
        .arg("test/*.test.mjs")
        .env("OSTLER_BIN", context.ostler())
        .env("NODE", &node);
    let mut tally = TestCounts::default();
    let status = shell::watch(&mut test, |line| {
        tally += parse_counts(line).unwrap_or_default();
    })?;
    if !status.success() && tally.failed == 0 {
        tally.failed = 1;
    }
    Ok(tally)
}

/// The summary lines of Node's test runner: `# pass 12`, `# fail 0`.
fn parse_counts(line: &str) -> Option<TestCounts> {
    let (word, count) = line.strip_prefix("# ")?.split_once(' ')?;
    let count = count.parse().ok()?;
    match word {
        "pass" => Some(TestCounts {
            passed: count,
            ..TestCounts::default()
        }),
        "fail" | "cancelled" | "skipped" | "todo" => Some(TestCounts {
            failed: count,
            ..TestCounts::default()
        }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_run_counts_as_failed() {
        let lines = ["# tests 14", "# pass 12", "# fail 0", "# skipped 2"];
        let mut tally = TestCounts::default();
        for line in lines {
            tally += parse_counts(line).unwrap_or_default();
        }
        assert_eq!((tally.passed, tally.failed), (12, 2));
    }
}
