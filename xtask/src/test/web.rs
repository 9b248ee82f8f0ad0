//! The web interface: its source, and its pages in a browser. What `web/package.json` names as
//! scripts is run by npm.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::plan::StepContext;
use crate::console::print_line;
use crate::setup::Tier;
use crate::test_counts::TestCounts;
use crate::{setup, shell};

/// The scripts, in order: style, types, unit tests, and the page itself.
const SCRIPTS: [&str; 4] = ["lint", "check", "test", "build"];
/// The browser, as its package is installed and as others name it.
const BROWSERS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];
/// The built page, below the source.
const BUILT: &str = "dist";

/// Checks, tests and builds the interface.
pub(super) fn run(context: StepContext<'_>) -> Result<TestCounts> {
    let mut tally = TestCounts::default();
    if !has_source(context) {
        return Ok(tally);
    }
    for script in SCRIPTS {
        tally += run_script(&mut npm(context, script)?)?;
    }
    Ok(tally)
}

/// Tests its pages in a browser, against the binary under test. Tests with the tag `@full` take long and
/// are those of the full tier.
pub(super) fn browser(context: StepContext<'_>) -> Result<TestCounts> {
    if !has_source(context) {
        return Ok(TestCounts::default());
    }
    let built = context.workspace.web().join(BUILT);
    if !built.join("index.html").exists() {
        bail!("{} is not built: the step web does that", built.display());
    }
    let script = match context.tier {
        Tier::Quick => "browser:quick",
        Tier::Full => "browser",
    };
    let mut npm = npm(context, script)?;
    npm.env("OSTLER_BIN", context.ostler())
        .env("OSTLER_WEB_DIR", built)
        .env("CHROMIUM", chromium()?);
    run_script(&mut npm)
}

fn has_source(context: StepContext<'_>) -> bool {
    let has_source = context.workspace.web().join("package.json").exists();
    if !has_source {
        print_line(format_args!(
            "there is no web/package.json: no web interface to test"
        ));
    }
    has_source
}

/// A script of the interface, run by a Node that is new enough.
fn npm(context: StepContext<'_>, script: &str) -> Result<Command> {
    let workspace = context.workspace;
    let mut npm = shell::command("npm", &workspace.web());
    npm.args(["run", "--silent", script]);
    npm.env("PATH", path_with(&setup::node(workspace)?)?);
    npm.env("NO_COLOR", "1");
    Ok(npm)
}

/// The path with the directory of this program first.
fn path_with(program: &Path) -> Result<OsString> {
    let own = program.parent().map(PathBuf::from);
    let own = own.filter(|dir| dir.is_absolute());
    let path = std::env::var_os("PATH").unwrap_or_default();
    let all = own.into_iter().chain(std::env::split_paths(&path));
    std::env::join_paths(all).context("a directory of the path has a ':' in its name")
}

fn chromium() -> Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let dirs: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let mut candidates = BROWSERS
        .iter()
        .flat_map(|name| dirs.iter().map(move |dir| dir.join(name)));
    candidates
        .find(|program| program.is_file())
        .context("there is no Chromium on the path; `cargo xtask setup` installs it")
}

/// Runs a script; one that counts no tests counts as one.
fn run_script(command: &mut Command) -> Result<TestCounts> {
    let mut counted = TestCounts::default();
    let status = shell::watch(command, |line| {
        counted += parse_counts(line).unwrap_or_default();
    })?;
    Ok(match (status.success(), counted.failed) {
        (true, 0) if counted.passed == 0 => TestCounts::from_success(true),
        (false, 0) => TestCounts {
            failed: 1,
            ..counted
        },
        (true | false, _) => counted,
    })
}

/// The summary lines of vitest (`Tests  2 failed | 40 passed (42)`) and of Playwright (`12 passed
/// (8.1s)`, `1 failed`, `1 flaky`, `2 did not run`).
fn parse_counts(line: &str) -> Option<TestCounts> {
    let line = line.trim();
    match line.strip_prefix("Tests ") {
        Some(counts) => Some(counts.split('|').filter_map(parse_count).fold(
            TestCounts::default(),
            |mut sum, count| {
                sum += count;
                sum
            },
        )),
        None => parse_count(line),
    }
}

fn parse_count(text: &str) -> Option<TestCounts> {
    let (number, word) = text.trim().split_once(' ')?;
    let number: u64 = number.parse().ok()?;
    let word = word.split(" (").next().unwrap_or(word);
    let mut counts = TestCounts::default();
    match word {
        "passed" => counts.passed = number,
        "flaky" => (counts.passed, counts.flaky) = (number, number),
        "failed" | "interrupted" | "did not run" | "skipped" | "todo" => counts.failed = number,
        _ => return None,
    }
    Some(counts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(line: &str) -> Option<(u64, u64, u64)> {
        parse_counts(line).map(|counts| (counts.passed, counts.failed, counts.flaky))
    }

    #[test]
    fn summaries_are_counted_and_what_was_not_run_has_failed() {
        for (line, counts) in [
            ("      Tests  40 passed (40)", (40, 0, 0)),
            ("Tests  2 failed | 40 passed | 1 skipped (43)", (40, 3, 0)),
            ("  12 passed (8.1s)", (12, 0, 0)),
            ("  1 failed", (0, 1, 0)),
            ("  2 did not run", (0, 2, 0)),
            ("  1 flaky", (1, 0, 1)),
        ] {
            assert_eq!(counted(line), Some(counts), "{line}");
        }
        for line in [
            "",
            " Test Files  9 passed (9)",
            "ok 3 browser/shell.spec.ts:9:1 a test (2.1s)",
            "Running 12 tests using 2 workers",
            "passed",
            "3 passengers",
        ] {
            assert_eq!(counted(line), None, "{line}");
        }
    }

    #[test]
    fn a_program_without_a_directory_changes_no_path() {
        let path = std::env::var_os("PATH").unwrap_or_default();
        assert_eq!(path_with(Path::new("node")).unwrap(), path);
        let first = path_with(Path::new("/opt/node/bin/node")).unwrap();
        assert!(first.to_string_lossy().starts_with("/opt/node/bin:"));
    }
}
