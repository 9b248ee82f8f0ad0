//! The tests that are recognised in the output of each runner.

use insta::assert_snapshot;

use crate::support::{report_of_fixture, tests};

#[test]
fn cargo_test() {
    assert_snapshot!(tests(&report_of_fixture("cargo-test")));
}

#[test]
fn nextest() {
    assert_snapshot!(tests(&report_of_fixture("nextest")));
}

#[test]
fn pytest_v() {
    assert_snapshot!(tests(&report_of_fixture("pytest-v")));
}

#[test]
fn pytest_summary() {
    assert_snapshot!(tests(&report_of_fixture("pytest-summary")));
}

#[test]
fn pytest_rerun() {
    assert_snapshot!(tests(&report_of_fixture("pytest-rerun")));
}

#[test]
fn go_test_v() {
    assert_snapshot!(tests(&report_of_fixture("go-test-v")));
}

#[test]
fn go_test() {
    assert_snapshot!(tests(&report_of_fixture("go-test")));
}

#[test]
fn jest() {
    assert_snapshot!(tests(&report_of_fixture("jest")));
}

#[test]
fn vitest() {
    assert_snapshot!(tests(&report_of_fixture("vitest")));
}

#[test]
fn node_tap() {
    assert_snapshot!(tests(&report_of_fixture("node-tap")));
}

#[test]
fn prove_v() {
    assert_snapshot!(tests(&report_of_fixture("prove-v")));
}

#[test]
fn prove() {
    assert_snapshot!(tests(&report_of_fixture("prove")));
}

#[test]
fn unittest_v() {
    assert_snapshot!(tests(&report_of_fixture("unittest-v")));
}

#[test]
fn unittest() {
    assert_snapshot!(tests(&report_of_fixture("unittest")));
}
