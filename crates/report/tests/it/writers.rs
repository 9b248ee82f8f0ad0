//! SARIF and JUnit, as their schemas require them.

use insta::assert_snapshot;
use ostler_model::termination::{TerminationCause, WaitStatus};
use ostler_model::{ExecutionId, Signal, Termination, Timestamp};
use ostler_report::{Report, ReportSubject, write_junit, write_sarif};
use serde_json::Value;

use crate::support::{report_of, report_of_fixture};

fn exited(code: i32) -> Termination {
    Termination::new(TerminationCause::Exited, WaitStatus::Code(code))
}

fn subject(ending: Option<&Termination>) -> ReportSubject<'_> {
    ReportSubject {
        id: ExecutionId::from_bytes([7; 16]),
        command: "cargo test 'a b'".to_owned(),
        cwd: "/home/user/my demo".to_owned(),
        started_at: Some(Timestamp::from_second(1_800_000_000).unwrap()),
        ended_at: ending.map(|_| Timestamp::from_second(1_800_000_001).unwrap()),
        ending,
        missing_bytes: 0,
    }
}

fn sarif(report: &Report, subject: &ReportSubject<'_>) -> Value {
    let mut out = Vec::new();
    write_sarif(report, subject, &mut out).unwrap();
    serde_json::from_slice(&out).unwrap()
}

fn junit(report: &Report, subject: &ReportSubject<'_>) -> String {
    let mut out = Vec::new();
    write_junit(report, subject, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// What the SARIF schema requires of every log, as far as these logs use it.
fn check_sarif(log: &Value) {
    assert_eq!(log["version"], "2.1.0");
    for run in log["runs"].as_array().unwrap() {
        let driver = &run["tool"]["driver"];
        assert!(!driver["name"].as_str().unwrap().is_empty());
        assert!(run["invocations"][0]["executionSuccessful"].is_boolean());
        let rules = driver["rules"].as_array().unwrap();
        for result in run["results"].as_array().unwrap() {
            assert!(result["message"]["text"].is_string());
            let level = result["level"].as_str().unwrap();
            assert!(["error", "warning", "note"].contains(&level));
            if let Some(index) = result["ruleIndex"].as_u64() {
                let rule = &rules[usize::try_from(index).unwrap()];
                assert_eq!(rule["id"], result["ruleId"]);
            }
            for location in result["locations"].as_array().into_iter().flatten() {
                let physical = &location["physicalLocation"];
                let base = physical["artifactLocation"]["uriBaseId"].as_str();
                let uri = physical["artifactLocation"]["uri"].as_str().unwrap();
                assert!(uri.bytes().all(|byte| byte.is_ascii_graphic()), "{uri}");
                assert_eq!(base.is_none(), uri.starts_with("file:///"), "{uri}");
                assert!(base.is_none_or(|base| run["originalUriBaseIds"][base].is_object()));
                let line = physical["region"]["startLine"].as_u64();
                assert_ne!(line, Some(0));
            }
        }
    }
}

#[test]
fn a_log_names_tools_rules_places_and_the_execution() {
    let ending = exited(101);
    let log = sarif(&report_of_fixture("rustc"), &subject(Some(&ending)));
    check_sarif(&log);
    assert_snapshot!(serde_json::to_string_pretty(&log).unwrap());
}

#[test]
fn logs_of_every_tool_are_valid() {
    let ending = exited(1);
    for name in [
        "clippy", "gcc", "tsc", "eslint", "mypy", "ruff", "javac", "pytest-v",
    ] {
        let log = sarif(&report_of_fixture(name), &subject(Some(&ending)));
        check_sarif(&log);
        assert_ne!(log["runs"][0]["results"][0], Value::Null, "{name}");
    }
}

#[test]
fn an_execution_without_diagnostics_is_named_too() {
    let log = sarif(&Report::default(), &subject(None));
    check_sarif(&log);
    let invocation = &log["runs"][0]["invocations"][0];
    assert_eq!(log["runs"][0]["results"], Value::Array(Vec::new()));
    assert_eq!(invocation["exitCode"], Value::Null);
    assert_eq!(invocation["executionSuccessful"], false);
    let notes = invocation["toolExecutionNotifications"].to_string();
    assert!(notes.contains("has not ended"), "{notes}");
}

#[test]
fn a_signal_is_no_exit_code() {
    let ending = Termination::new(TerminationCause::Signaled, WaitStatus::Signal(Signal::KILL));
    let log = sarif(&Report::default(), &subject(Some(&ending)));
    let invocation = &log["runs"][0]["invocations"][0];
    assert_eq!(invocation["exitSignalNumber"], 9);
    assert_eq!(invocation["exitSignalName"], "SIGKILL");
    assert_eq!(invocation["exitCode"], Value::Null);
}

#[test]
fn what_is_missing_is_reported() {
    let ending = exited(0);
    let mut report = report_of_fixture("cargo-test");
    report.omitted_diagnostics = 4;
    report.omitted_tests = 5;
    let mut subject = subject(Some(&ending));
    subject.missing_bytes = 6;
    let log = sarif(&report, &subject).to_string();
    assert!(log.contains("4 more diagnostics"), "{log}");
    assert!(log.contains("6 bytes of output are gone"), "{log}");
    let xml = junit(&report, &subject);
    assert!(
        xml.contains("name=\"ostler.omitted_tests\" value=\"5\""),
        "{xml}"
    );
    assert!(
        xml.contains("name=\"ostler.missing_bytes\" value=\"6\""),
        "{xml}"
    );
}

#[test]
fn a_flaky_test_passes_and_shows_its_failure() {
    let ending = exited(101);
    let xml = junit(&report_of_fixture("nextest"), &subject(Some(&ending)));
    assert_snapshot!(xml);
}

#[test]
fn failures_and_errors_of_one_test_are_in_the_order_of_the_schema() {
    let ending = exited(1);
    let text = "============================= test session starts =============================\n\
                a.py::test_one ERROR [ 10%]\na.py::test_one FAILED [ 10%]\n\
                a.py::test_one ERROR [ 10%]\na.py::test_one FAILED [ 10%]\n";
    let xml = junit(&report_of(text), &subject(Some(&ending)));
    let lines = xml.lines().map(str::trim_start);
    let names = lines.filter_map(|line| line.split_once(" type=").map(|_| line.split(' ').next()));
    let names: Vec<&str> = names.flatten().collect();
    assert_eq!(
        names,
        ["<failure", "<rerunFailure", "<rerunFailure", "<rerunError"]
    );
    assert!(xml.contains("failures=\"1\" errors=\"0\""), "{xml}");
}

#[test]
fn an_execution_without_tests_has_an_empty_suite() {
    let ending = exited(0);
    assert_snapshot!(junit(&Report::default(), &subject(Some(&ending))));
}

#[test]
fn hostile_texts_stay_texts() {
    let ending = exited(101);
    let mut subject = subject(Some(&ending));
    subject.command = "printf '\0\u{1b}[31m\"/><evil>&amp;'".to_owned();
    subject.cwd = "/tmp/\u{1}\"<x>".to_owned();
    let text = "running 1 test\ntest a\"<b>&]]>'é\u{fffe} ... FAILED\n\
                ---- a\"<b>&]]>'é\u{fffe} stdout ----\n<boom>\u{ffff}\nfailures:\n\
                x\"<y>.c:1:2: error: <boom> \"&\"\n";
    let report = report_of(text);
    assert_eq!(report.tests[0].attempts[0].message, "<boom>\u{ffff}");
    let xml = junit(&report, &subject);
    assert!(!xml.contains("<evil>") && !xml.contains("<b>") && !xml.contains("<boom>"));
    let legal = |c: char| matches!(c, '\n' | ' '..='\u{fffd}' | '\u{10000}'..);
    assert!(xml.chars().all(legal));
    check_sarif(&sarif(&report, &subject));
}
