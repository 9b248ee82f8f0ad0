//! The MCP conformance suites: against the router and transports with the suites' own tools on
//! them, where nothing may fail; and against the released binary, where exactly what needs such a
//! tool fails.

use std::process::Command;

use anyhow::Result;

use super::plan::StepContext;
use super::server::TestServer;
use crate::console::print_line;
use crate::test_counts::TestCounts;
use crate::test_env::TestEnv;
use crate::{setup, shell};

struct ConformanceSuite {
    /// Its package below `node_modules`.
    package: &'static str,
    /// Its arguments in addition to the address.
    args: &'static [&'static str],
    /// The expected failures of the released binary, below `tests/conformance`.
    baseline: &'static str,
}

const SUITES: &[ConformanceSuite] = &[
    ConformanceSuite {
        package: "conformance",
        args: &["--requirements", "2026-07-28"],
        baseline: "2026-07-28.yaml",
    },
    ConformanceSuite {
        package: "conformance",
        args: &["--requirements", "2025-11-25"],
        baseline: "2025-11-25.yaml",
    },
    ConformanceSuite {
        package: "conformance-2025",
        args: &[],
        baseline: "0.1.16.yaml",
    },
];

pub(super) fn run(context: StepContext<'_>) -> Result<TestCounts> {
    let mut tally = run_fixture_server(context)?;
    tally += run_shipped(context).unwrap_or_else(|error| {
        print_line(format_args!("the binary as it ships: {error:#}"));
        TestCounts::from_success(false)
    });
    Ok(tally)
}

/// Requires that every check of every suite passes.
fn run_fixture_server(context: StepContext<'_>) -> Result<TestCounts> {
    let workspace = context.workspace;
    let binary = workspace.target().join("debug/examples/conformance_server");
    let server = TestServer::start(&mut shell::command(binary, workspace.root()))?;
    let mut tally = TestCounts::default();
    for suite in SUITES {
        tally += run_checked(&mut suite.command(context, &server.url)?)?;
    }
    server.end()?;
    Ok(tally)
}

/// Requires exactly the failures of the baseline; a listed check that passes fails the step.
fn run_shipped(context: StepContext<'_>) -> Result<TestCounts> {
    let workspace = context.workspace;
    let env = TestEnv::new(&std::env::temp_dir(), &context.ostler())?;
    let mut serve = env.ostler(&["serve", "--no-token", "--port", "0"]);
    let server = TestServer::start(&mut serve)?;
    let mut tally = TestCounts::default();
    for suite in SUITES {
        let baseline = workspace.root().join("tests/conformance");
        let mut command = suite.command(context, &server.url)?;
        command
            .arg("--expected-failures")
            .arg(baseline.join(suite.baseline));
        tally += TestCounts::from_success(run_captured(&mut command)?.1);
    }
    env.shut_down()?;
    server.end()?;
    Ok(tally)
}

impl ConformanceSuite {
    fn command(&self, context: StepContext<'_>, url: &str) -> Result<Command> {
        let workspace = context.workspace;
        let suite = workspace.clients().join("node_modules").join(self.package);
        let mut command = shell::command(setup::node(workspace)?, workspace.root());
        command
            .arg(suite.join("dist/index.js"))
            .args(["server", "--url", url])
            .args(self.args)
            .env("NO_COLOR", "1");
        Ok(command)
    }
}

/// Counts the checks of one run.
fn run_checked(command: &mut Command) -> Result<TestCounts> {
    let (lines, success) = run_captured(command)?;
    let sum = lines.iter().rev().find_map(|line| parse_total(line));
    let mut tally = sum.unwrap_or_default();
    if !success && tally.failed == 0 {
        tally.failed = 1;
    }
    Ok(tally)
}

/// The output of a run; printed from its summary on, or completely if it fails.
fn run_captured(command: &mut Command) -> Result<(Vec<String>, bool)> {
    print_line(format_args!("$ {}", shell::display(command)));
    let output = command.output()?;
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    let lines: Vec<String> = text.lines().map(crate::console::strip_ansi).collect();
    let success = output.status.success();
    let summary = lines.iter().position(|line| line.contains("=== SUMMARY"));
    let from = summary.filter(|_| success).unwrap_or_default();
    for line in &lines[from..] {
        print_line(format_args!("{line}"));
    }
    Ok((lines, success))
}

/// `Total: 193 passed, 2 failed`
fn parse_total(line: &str) -> Option<TestCounts> {
    let counts = line.trim().strip_prefix("Total: ")?;
    TestCounts::parse_line(&format!("{counts} in 0s"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_of_a_run_is_read() {
        let tally = parse_total("Total: 193 passed, 2 failed").unwrap();
        assert_eq!((tally.passed, tally.failed), (193, 2));
        assert_eq!(parse_total("✓ ping: 2 passed, 0 failed"), None);
    }
}
