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
fn go_test_v() {
    assert_snapshot!(tests(&report_of_fixture("go-test-v")));
}

#[test]
fn go_test() {
    assert_snapshot!(tests(&report_of_fixture("go-test")));
}

#[test]
fn unittest_v() {
    assert_snapshot!(tests(&report_of_fixture("unittest-v")));
}

#[test]
fn unittest() {
    assert_snapshot!(tests(&report_of_fixture("unittest")));
}
