//! Counts of passed tests, parsed from the summary lines of test runners.

use std::ops::AddAssign;

/// The numbers of passed and failed tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct TestCounts {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    /// Passed only at the second attempt; included in `passed`.
    pub(crate) flaky: u64,
}

impl AddAssign for TestCounts {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.flaky += other.flaky;
    }
}

impl TestCounts {
    /// The counts of one check.
    pub(crate) fn from_success(holds: bool) -> Self {
        Self {
            passed: u64::from(holds),
            failed: u64::from(!holds),
            flaky: 0,
        }
    }

    /// Combines the counts with those of a second attempt at everything that failed.
    pub(crate) fn after_retry(self, second: Self) -> Self {
        let recovered = second.passed.min(self.failed);
        Self {
            passed: self.passed + recovered,
            failed: self.failed - recovered,
            flaky: self.flaky + recovered,
        }
    }

    /// Parses a summary line of nextest, of the standard test harness or of pytest. Only nextest's
    /// may be indented: it indents the output of a failed attempt, which includes the summary of
    /// that attempt's harness.
    pub(crate) fn parse_line(line: &str) -> Option<Self> {
        if let Some((head, counts)) = line.split_once(" run: ") {
            let closes = head.trim_start().starts_with("Summary [");
            return closes.then(|| Self::sum(counts));
        }
        if line.starts_with(char::is_whitespace) {
            return None;
        }
        let line = line.trim_end().trim_matches('=').trim();
        if let Some(counts) = line.strip_prefix("test result: ") {
            return Some(Self::sum(
                counts.split_once(". ").map_or(counts, |(_, rest)| rest),
            ));
        }
        let (counts, time) = line.rsplit_once(" in ")?;
        let closes = time.starts_with(|c: char| c.is_ascii_digit()) && time.contains('s');
        let tally = Self::sum(counts);
        (closes && tally != Self::default()).then_some(tally)
    }

    fn sum(counts: &str) -> Self {
        let mut tally = Self::default();
        for part in counts.split([',', ';', '(']) {
            let mut words = part.split_whitespace();
            let (Some(number), Some(word)) = (words.next(), words.next()) else {
                continue;
            };
            let Ok(number) = number.parse::<u64>() else {
                continue;
            };
            match word {
                "passed" => tally.passed += number,
                "flaky" | "flaky)" => tally.flaky += number,
                "failed" | "error" | "errors" | "timed" | "exec" => tally.failed += number,
                _ => {}
            }
        }
        tally
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(line: &str) -> Option<(u64, u64)> {
        TestCounts::parse_line(line).map(|tally| (tally.passed, tally.failed))
    }

    #[test]
    fn closing_lines_are_counted() {
        let nextest = "     Summary [  12.305s] 70 tests run: 66 passed (1 slow), 2 failed, 1 timed out, 1 exec failed, 3 skipped";
        assert_eq!(counted(nextest), Some((66, 4)));
        let flaky = "Summary [ 12.305s] 70 tests run: 70 passed (1 slow, 2 flaky), 3 skipped";
        assert_eq!(
            TestCounts::parse_line(flaky).map(|tally| tally.flaky),
            Some(2)
        );
        assert_eq!(counted(flaky), Some((70, 0)));
        assert_eq!(
            counted("     Summary [   0.005s] 1 test run: 1 passed, 0 skipped"),
            Some((1, 0))
        );
        let harness =
            "test result: FAILED. 12 passed; 1 failed; 2 ignored; 0 measured; 0 filtered out";
        assert_eq!(counted(harness), Some((12, 1)));
        let pytest = "==== 2 failed, 71 passed, 1 skipped, 3 errors in 12.31s (0:00:12) ====";
        assert_eq!(counted(pytest), Some((71, 5)));
        assert_eq!(counted("24 passed in 3.20s"), Some((24, 0)));
    }

    #[test]
    fn a_second_attempt_recovers_what_passed_in_it() {
        let tally = |passed, failed, flaky| TestCounts {
            passed,
            failed,
            flaky,
        };
        let both = tally(10, 3, 0).after_retry(tally(2, 1, 0));
        assert_eq!(both, tally(12, 1, 2));
        let crashed = tally(10, 3, 0).after_retry(tally(0, 1, 0));
        assert_eq!(crashed, tally(10, 3, 0));
    }

    #[test]
    fn other_lines_are_not() {
        for line in [
            "",
            "    Finished `dev` profile in 3.2s",
            "test a ... ok",
            "running 12 tests",
            "12 passed",
            "    test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 9 filtered out",
        ] {
            assert_eq!(counted(line), None, "{line}");
        }
    }
}
