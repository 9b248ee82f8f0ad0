//! The MCP conformance suites: against our router and transports with the suites' own tools on
//! them, where nothing may fail; and against the binary as it ships, where exactly what needs
//! such a tool fails.

use std::process::Command;

use anyhow::Result;

use super::plan::Context;
use super::server::Server;
use super::tally::Tally;
use crate::lab::Lab;
use crate::ui::say;
use crate::{setup, sh};

/// One way to run a suite.
struct Suite {
    /// Its package below `node_modules`.
    package: &'static str,
    /// What it is asked beyond the address.
    args: &'static [&'static str],
    /// What the binary as it ships fails, below `tests/conformance`.
    baseline: &'static str,
}

const SUITES: &[Suite] = &[
    Suite {
        package: "conformance",
        args: &["--requirements", "2026-07-28"],
        baseline: "2026-07-28.yaml",
    },
    Suite {
        package: "conformance",
        args: &["--requirements", "2025-11-25"],
        baseline: "2025-11-25.yaml",
    },
    Suite {
        package: "conformance-2025",
        args: &[],
        baseline: "0.1.16.yaml",
    },
];

pub(super) fn run(context: Context<'_>) -> Result<Tally> {
    let mut tally = with_fixtures(context)?;
    tally += as_shipped(context).unwrap_or_else(|error| {
        say(format_args!("the binary as it ships: {error:#}"));
        Tally::of(false)
    });
    Ok(tally)
}

/// Every check of every suite holds.
fn with_fixtures(context: Context<'_>) -> Result<Tally> {
    let workspace = context.workspace;
    let binary = workspace.target().join("debug/examples/conformance_server");
    let server = Server::start(&mut sh::command(binary, workspace.root()))?;
    let mut tally = Tally::default();
    for suite in SUITES {
        tally += checked(&mut suite.command(context, &server.url)?)?;
    }
    server.end()?;
    Ok(tally)
}

/// What fails is exactly what the baseline names; what it names and holds, fails.
fn as_shipped(context: Context<'_>) -> Result<Tally> {
    let workspace = context.workspace;
    let lab = Lab::new(&std::env::temp_dir(), &context.ostler())?;
    let mut serve = lab.ostler(&["serve", "--no-token", "--port", "0"]);
    let server = Server::start(&mut serve)?;
    let mut tally = Tally::default();
    for suite in SUITES {
        let baseline = workspace.root().join("tests/conformance");
        let mut command = suite.command(context, &server.url)?;
        command
            .arg("--expected-failures")
            .arg(baseline.join(suite.baseline));
        tally += Tally::of(told(&mut command)?.1);
    }
    lab.shut_down()?;
    server.end()?;
    Ok(tally)
}

impl Suite {
    fn command(&self, context: Context<'_>, url: &str) -> Result<Command> {
        let workspace = context.workspace;
        let suite = workspace.clients().join("node_modules").join(self.package);
        let mut command = sh::command(setup::node(workspace)?, workspace.root());
        command
            .arg(suite.join("dist/index.js"))
            .args(["server", "--url", url])
            .args(self.args)
            .env("NO_COLOR", "1");
        Ok(command)
    }
}

/// Counts the checks of one run.
fn checked(command: &mut Command) -> Result<Tally> {
    let (lines, success) = told(command)?;
    let sum = lines.iter().rev().find_map(|line| total(line));
    let mut tally = sum.unwrap_or_default();
    if !success && tally.failed == 0 {
        tally.failed = 1;
    }
    Ok(tally)
}

/// What a run says; shown from its summary on, whole when it does not succeed.
fn told(command: &mut Command) -> Result<(Vec<String>, bool)> {
    say(format_args!("$ {}", sh::shown(command)));
    let output = command.output()?;
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    let lines: Vec<String> = text.lines().map(crate::ui::plain).collect();
    let success = output.status.success();
    let summary = lines.iter().position(|line| line.contains("=== SUMMARY"));
    let from = summary.filter(|_| success).unwrap_or_default();
    for line in &lines[from..] {
        say(format_args!("{line}"));
    }
    Ok((lines, success))
}

/// `Total: 193 passed, 2 failed`
fn total(line: &str) -> Option<Tally> {
    let counts = line.trim().strip_prefix("Total: ")?;
    Tally::read(&format!("{counts} in 0s"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_of_a_run_is_read() {
        let tally = total("Total: 193 passed, 2 failed").unwrap();
        assert_eq!((tally.passed, tally.failed), (193, 2));
        assert_eq!(total("✓ ping: 2 passed, 0 failed"), None);
    }
}
