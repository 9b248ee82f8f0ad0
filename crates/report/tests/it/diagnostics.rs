//! The diagnostics that are recognised in the output of each tool.

use insta::assert_snapshot;

use crate::support::{diagnostics, report_of_fixture};

#[test]
fn rustc() {
    assert_snapshot!(diagnostics(&report_of_fixture("rustc")));
}

#[test]
fn clippy() {
    assert_snapshot!(diagnostics(&report_of_fixture("clippy")));
}

#[test]
fn cargo_test() {
    assert_snapshot!(diagnostics(&report_of_fixture("cargo-test")));
}

#[test]
fn gcc() {
    assert_snapshot!(diagnostics(&report_of_fixture("gcc")));
}

#[test]
fn tsc() {
    assert_snapshot!(diagnostics(&report_of_fixture("tsc")));
}

#[test]
fn tsc_pretty() {
    assert_snapshot!(diagnostics(&report_of_fixture("tsc-pretty")));
}

#[test]
fn eslint() {
    assert_snapshot!(diagnostics(&report_of_fixture("eslint")));
}

#[test]
fn mypy() {
    assert_snapshot!(diagnostics(&report_of_fixture("mypy")));
}

#[test]
fn ruff() {
    assert_snapshot!(diagnostics(&report_of_fixture("ruff")));
}

#[test]
fn flake8() {
    assert_snapshot!(diagnostics(&report_of_fixture("flake8")));
}

#[test]
fn shellcheck() {
    assert_snapshot!(diagnostics(&report_of_fixture("shellcheck")));
}

#[test]
fn go_build() {
    assert_snapshot!(diagnostics(&report_of_fixture("go-build")));
}

#[test]
fn javac() {
    assert_snapshot!(diagnostics(&report_of_fixture("javac")));
}

#[test]
fn pytest_v() {
    assert_snapshot!(diagnostics(&report_of_fixture("pytest-v")));
}

#[test]
fn pytest_summary() {
    assert_snapshot!(diagnostics(&report_of_fixture("pytest-summary")));
}
