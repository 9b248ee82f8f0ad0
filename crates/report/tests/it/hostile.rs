//! Output that is made to cost memory or time, and output of no tool.

use ostler_report::limits::{ATTEMPTS, DIAGNOSTICS, MESSAGE_BYTES, NAME_BYTES, TESTS};
use ostler_report::{DiagnosticSeverity, TestOutcome};
use proptest::prelude::*;

use crate::support::{report_of, report_of_fixture};

#[test]
fn text_without_reports_is_empty() {
    for text in [
        "",
        "ok then\nnot ok at all\nfailed: 3 errors\n",
        "ok 1 item\nok 1/5\nok 2 - second of none\n",
        "listening on http://127.0.0.1:8080: ready\n12:30:15: started\n",
        "Time: 12:30: error: the clock\nERROR: Could not find a version (pip.x)\n",
        "FAILED tests/test_a.py::test_one - words without a session\n",
        "test the pump ... ok\n  --> src/lib.rs:1:1\n",
        "--- a/src/main.go\n+++ b/src/main.go\n",
    ] {
        let report = report_of(text);
        assert!(report.diagnostics.is_empty(), "{text:?}: {report:?}");
        assert!(report.tests.is_empty(), "{text:?}: {report:?}");
    }
}

#[test]
fn colours_change_nothing() {
    let plain = report_of_fixture("rustc").diagnostics.len();
    let text = "\u{1b}[0m\u{1b}[1m\u{1b}[38;5;9merror[E0308]\u{1b}[0m\u{1b}[1m: mismatched types\u{1b}[0m\n\
                \u{1b}[1m\u{1b}[38;5;12m--> \u{1b}[0msrc/lib.rs:4:18\r\n";
    let report = report_of(text);
    assert!(plain > 1);
    assert_eq!(report.diagnostics.len(), 1);
    assert_eq!(report.diagnostics[0].rule.as_deref(), Some("E0308"));
    assert_eq!(
        report.diagnostics[0].location.as_ref().unwrap().file,
        "src/lib.rs"
    );
}

#[test]
fn a_line_of_a_megabyte_is_cut() {
    let long = "x".repeat(1 << 20);
    let report = report_of(&format!(
        "a.c:1:2: error: {long}\n{long}.c:1:2: error: far\n"
    ));
    assert_eq!(report.diagnostics.len(), 1);
    assert_eq!(report.diagnostics[0].message.len(), MESSAGE_BYTES);
}

#[test]
fn names_are_cut_at_characters() {
    let name = "é".repeat(NAME_BYTES);
    let report = report_of(&format!("running 1 test\ntest {name} ... ok\n"));
    assert_eq!(report.tests[0].name.len(), NAME_BYTES);
}

#[test]
fn long_names_that_differ_at_their_ends_are_two_tests() {
    let name = "x".repeat(NAME_BYTES * 2);
    let text = format!("running 2 tests\ntest {name}a ... FAILED\ntest {name}b ... ok\n");
    let report = report_of(&text);
    assert_eq!(report.tests.len(), 2);
    assert_eq!(report.test_counts().failed, 1);
}

#[test]
fn a_block_of_tap_that_is_not_ended_hides_nothing() {
    let text = "TAP version 13\nnot ok 1 - a\n  ---\n  error: 'e'\nok 2 - b\nok 3 - c\n";
    let report = report_of(text);
    let messages: Vec<&str> = report
        .tests
        .iter()
        .map(|test| test.last().message.as_str())
        .collect();
    assert_eq!(messages, ["e", "", ""]);
}

#[test]
fn output_of_nextest_is_not_that_of_its_test_programs() {
    let text = [
        "    Starting 1 test across 1 binary",
        "        FAIL [   0.1s] demo one",
        "     Summary [   0.1s] 1 test run: 0 passed, 1 failed",
        "        FAIL [   0.1s] demo one",
        "--- STDOUT: demo one ---",
        "running 1 test",
        "test one ... FAILED",
        "--- STDERR: demo one ---",
        "thread 'one' panicked at src/lib.rs:1:1:",
        "boom",
        "   Doc-tests demo",
        "running 1 test",
        "test src/lib.rs - add (line 5) ... ok",
    ];
    let report = report_of(&text.join("\n"));
    let found: Vec<(&str, &str)> = report
        .tests
        .iter()
        .map(|test| (test.runner.as_str(), test.last().message.as_str()))
        .collect();
    assert_eq!(found, [("nextest", "boom"), ("cargo-test", "")]);
    assert_eq!(report.tests[0].attempts.len(), 1);
}

#[test]
fn errors_are_kept_longer_than_warnings() {
    let warnings = DIAGNOSTICS + 5;
    let mut text = "a.c:1:2: warning: w\n".repeat(warnings);
    text.push_str("a.c:1:2: error: e\n");
    let report = report_of(&text);
    assert_eq!(report.diagnostics.len(), DIAGNOSTICS + 1);
    assert_eq!(report.omitted_diagnostics, 5);
    assert_eq!(report.count(DiagnosticSeverity::Error), 1);
}

#[test]
fn failed_tests_are_kept_longer_than_passed_ones() {
    let mut text = "running 2 tests\n".to_owned();
    for number in 0..TESTS + 7 {
        text.push_str(&format!("test t{number} ... ok\n"));
    }
    text.push_str("test bad ... FAILED\n");
    let report = report_of(&text);
    assert_eq!(report.tests.len(), TESTS + 1);
    assert_eq!(report.omitted_tests, 7);
    assert_eq!(report.test_counts().failed, 1);
}

#[test]
fn the_last_of_many_attempts_decides() {
    let mut text = "running 1 test\n".to_owned();
    text.push_str(&"test often ... FAILED\n".repeat(ATTEMPTS * 3));
    text.push_str("test often ... ok\n");
    let report = report_of(&text);
    assert_eq!(report.tests[0].attempts.len(), ATTEMPTS);
    assert_eq!(report.tests[0].outcome(), TestOutcome::Passed);
    assert!(report.tests[0].is_flaky());
}

#[test]
fn tests_of_one_name_in_two_programs_are_two() {
    let program = |hash| {
        format!(
            "     Running tests/it.rs (target/debug/deps/it-{hash})\nrunning 1 test\n\
             test one ... {}\ntest result: x\n",
            if hash == 1 { "FAILED" } else { "ok" }
        )
    };
    let report = report_of(&format!("{}{}", program(1), program(2)));
    assert_eq!(report.tests.len(), 2);
    assert_eq!(report.test_counts().flaky, 0);
    let tap = "1..1\nnot ok 1 - works\n1..1\nok 1 - works\n";
    assert_eq!(report_of(tap).test_counts().failed, 1);
    assert_eq!(report_of(tap).tests.len(), 2);
}

/// Beginnings that parsers know, and pieces of them.
const PIECES: &[&str] = &[
    "error",
    "[E1]",
    ": ",
    "--> ",
    "a.c:1:2",
    ":",
    "not ok ",
    "ok 1",
    " - x",
    "---",
    "...",
    "  ",
    "=== RUN   ",
    "--- FAIL: T (0.00s)",
    "FAIL\t",
    "PASS a.js",
    "  ● ",
    "✓ ",
    " RUN  v1",
    "FAIL  ",
    "====",
    " FAILURES ",
    "____ t ____",
    "FAILED a.py::t",
    "E  ",
    "running 1 test",
    "test a ... ok",
    "---- a stdout ----",
    "TRY 1 FAIL [ 1s] ",
    "Starting 1 test across",
    "TAP version 13",
    "\n",
    "\u{1b}[31m",
    "\0",
    "é",
    "# Subtest: ",
    "duration_ms: ",
    "a.t .. ",
    "(",
    ")",
    " (1 ms)",
    "::",
];

proptest! {
    #[test]
    fn any_output_is_read(parts in prop::collection::vec(
        prop_oneof![prop::sample::select(PIECES).prop_map(str::to_owned), "\\PC{0,6}"], 0..120)
    ) {
        let report = report_of(&parts.concat());
        prop_assert!(report.tests.iter().all(|test| !test.attempts.is_empty()));
    }
}

#[test]
fn the_last_line_of_ruff_names_its_own_findings_only() {
    let text = [
        "a.py:1:1: F401 'os' imported but unused",
        "b.py:1:1: F401 [*] `os` imported but unused",
        "b.py:2:1: E501 Line too long (120 > 88)",
        "Found 5 errors (3 fixed, 2 remaining).",
    ];
    let report = report_of(&text.join("\n"));
    let tools: Vec<&str> = report
        .diagnostics
        .iter()
        .map(|one| one.tool.as_str())
        .collect();
    assert_eq!(tools, ["flake8", "ruff", "ruff"]);
}
