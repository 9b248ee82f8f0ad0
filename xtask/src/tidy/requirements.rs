//! `docs/requirements.md`: every row is complete, and every test that it names exists.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::diagnostic::Diagnostic;
use crate::repository_files::files_below;

/// The file that this rule checks.
const PLACE: &str = "docs/requirements.md";
/// The columns of each of its tables.
const COLUMNS: [&str; 5] = ["id", "requirement", "from", "status", "tests"];
/// The documents a requirement can come from.
const ORIGINS: [&str; 6] = [
    "command server",
    "container engine",
    "terminal sessions",
    "asynchronous shell",
    "service mode",
    "specification",
];
/// The file with the list of steps of `cargo xtask test`.
const PLAN: &str = "xtask/src/test/plan.rs";
/// The directory of the benchmarks.
const BENCHMARKS: &str = "xtask/src/bench/";
/// The directory of the results of the benchmarks.
const RESULTS: &str = "docs/bench/";

/// Contents of files by their paths relative to the repository's root.
pub(super) type Texts = BTreeMap<String, String>;

/// Checks every row of the file in the repository against the existing tests.
pub(super) fn check(root: &Path) -> Result<Vec<Diagnostic>> {
    let text = fs::read_to_string(root.join(PLACE)).with_context(|| PLACE.to_owned())?;
    Ok(check_text(&text, &texts(root, &text)?))
}

/// The files that the rows name; a file that cannot be read is left out.
fn texts(root: &Path, text: &str) -> Result<Texts> {
    let mut paths: BTreeSet<String> = references(text)
        .filter_map(|reference| Some(reference.split_once("::")?.0.to_owned()))
        .collect();
    paths.insert(PLAN.to_owned());
    for directory in [BENCHMARKS, RESULTS] {
        for path in files_below(&root.join(directory), &["rs", "md"])? {
            let place = path.strip_prefix(root).unwrap_or(&path);
            paths.insert(place.to_string_lossy().into_owned());
        }
    }
    let read = |path: String| {
        let text = fs::read_to_string(root.join(&path)).ok()?;
        Some((path, text))
    };
    Ok(paths.into_iter().filter_map(read).collect())
}

/// Checks this text, where `texts` are the files that its rows may name.
pub(super) fn check_text(text: &str, texts: &Texts) -> Vec<Diagnostic> {
    let mut findings = Vec::new();
    let mut ids = BTreeSet::new();
    for (line, cells) in rows(text) {
        for message in violations(&cells, texts, &mut ids) {
            findings.push(Diagnostic::failure(PLACE, line, message));
        }
    }
    findings
}

/// The rows of all tables without their heads, each with its line from 1.
fn rows(text: &str) -> impl Iterator<Item = (usize, Vec<&str>)> {
    text.lines().enumerate().filter_map(|(index, line)| {
        let cells: Vec<&str> = line
            .trim()
            .strip_prefix('|')?
            .strip_suffix('|')?
            .split('|')
            .map(str::trim)
            .collect();
        let is_head = cells == COLUMNS || cells.iter().all(|cell| cell.starts_with("--"));
        (!is_head).then_some((index + 1, cells))
    })
}

/// All references of all rows.
fn references(text: &str) -> impl Iterator<Item = &str> {
    rows(text)
        .filter_map(|(_, cells)| cells.get(4).copied())
        .flat_map(code_spans)
}

/// The text between backticks.
fn code_spans(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

fn violations<'a>(cells: &[&'a str], texts: &Texts, ids: &mut BTreeSet<&'a str>) -> Vec<String> {
    let &[id, requirement, from, status, tests] = cells else {
        return vec![format!("a row has the columns {}", COLUMNS.join(", "))];
    };
    let mut found = Vec::new();
    if !is_id(id) {
        found.push(format!("'{id}' is no id; allowed: words joined by dots"));
    }
    if !ids.insert(id) {
        found.push(format!("the id '{id}' is used twice"));
    }
    if requirement.is_empty() {
        found.push(format!("'{id}' says nothing"));
    }
    let unknown = from.split(", ").find(|origin| !ORIGINS.contains(origin));
    if let Some(origin) = unknown {
        let allowed = ORIGINS.join(", ");
        found.push(format!("'{origin}' is no origin; allowed: {allowed}"));
    }
    found.extend(missing_proofs(status, tests, texts));
    found
}

fn is_id(id: &str) -> bool {
    let is_word = |word: &str| {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        !word.is_empty() && word.chars().all(plain)
    };
    id.contains('.') && id.split('.').all(is_word)
}

/// What is wrong with a status and the tests that prove it.
fn missing_proofs(status: &str, tests: &str, texts: &Texts) -> Vec<String> {
    let references: Vec<&str> = code_spans(tests).collect();
    let names_tests = match status {
        "held" => true,
        "untested" | "not built" => false,
        _ if is_partly(status) => true,
        _ => {
            let allowed = "held, partly: WHAT IS MISSING, untested, not built";
            return vec![format!("'{status}' is no status; allowed: {allowed}")];
        }
    };
    match (names_tests, references.is_empty()) {
        (true, true) => vec![format!("'{status}' without a test that proves it")],
        (false, false) => vec![format!("'{status}' with a test")],
        (true, false) | (false, true) => references
            .into_iter()
            .filter_map(|reference| missing(reference, texts))
            .collect(),
    }
}

fn is_partly(status: &str) -> bool {
    status
        .strip_prefix("partly: ")
        .is_some_and(|missing| !missing.is_empty())
}

/// Why a reference names no test.
fn missing(reference: &str, texts: &Texts) -> Option<String> {
    if let Some(step) = reference.strip_prefix("step ") {
        let entry = format!("step(\"{step}\"");
        let plan = texts
            .get(PLAN)
            .map(|plan| plan.split_whitespace().collect::<String>());
        let known = plan.is_some_and(|plan| plan.contains(&entry));
        return (!known).then(|| format!("there is no step '{step}' in {PLAN}"));
    }
    let Some((path, name)) = reference.split_once("::") else {
        return Some(format!("'{reference}' names no test; allowed: FILE::TEST"));
    };
    if let Some(suite) = path.strip_prefix("bench ") {
        let known = is_measured(suite, name, texts);
        return (!known).then(|| format!("no benchmark '{suite}' has a row '{name}'"));
    }
    let Some(text) = texts.get(path) else {
        return Some(format!("{path} cannot be read"));
    };
    let known = match path.rsplit_once('.').map_or("", |(_, ending)| ending) {
        "rs" => is_rust_test(text, name),
        "py" => text.lines().any(|line| is_python_test(line, name)),
        "mjs" | "ts" => text.contains(&format!("test('{name}'")),
        _ => false,
    };
    (!known).then(|| format!("{path} has no test '{name}'"))
}

/// Whether a row of this name is in a result of the suite, or is written by a benchmark.
fn is_measured(suite: &str, row: &str, texts: &Texts) -> bool {
    let result = format!("{RESULTS}{suite}-");
    let in_result = |text: &str| {
        let first = |line: &str| Some(line.strip_prefix("| ")?.split_once(" |")?.0.to_owned());
        text.lines().filter_map(first).any(|cell| cell == row)
    };
    texts.iter().any(|(path, text)| {
        let plain = text.replace('`', "");
        (path.starts_with(&result) && in_result(&plain))
            || (path.starts_with(BENCHMARKS) && plain.contains(&format!("\"{row}\"")))
    })
}

fn is_python_test(line: &str, name: &str) -> bool {
    let line = line.trim_start();
    let line = line.strip_prefix("async ").unwrap_or(line);
    name.starts_with("test_") && line.starts_with(&format!("def {name}("))
}

/// Whether a Rust file has a test function of this name, or a list of tests with it.
fn is_rust_test(text: &str, name: &str) -> bool {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let declared = lines.iter().enumerate().any(|(index, line)| {
        is_function(line, name) && is_test_attribute(lines.get(..index).unwrap_or_default())
    });
    declared || lines.iter().any(|line| is_listed(line, name))
}

fn is_function(line: &str, name: &str) -> bool {
    let line = line.strip_prefix("async ").unwrap_or(line);
    line.starts_with(&format!("fn {name}("))
}

/// Whether the attributes of a function make it a test that is not ignored.
fn is_test_attribute(above: &[&str]) -> bool {
    let attributes = above
        .iter()
        .rev()
        .take_while(|line| !line.is_empty() && !line.ends_with(['{', '}', ';']));
    let attributes: Vec<&str> = attributes
        .copied()
        .filter(|line| line.starts_with("#["))
        .collect();
    let is_test = |line: &&str| line.starts_with("#[test]") || line.contains("::test");
    attributes.iter().any(is_test) && !attributes.iter().any(|line| line.starts_with("#[ignore"))
}

/// Whether a line of a test program with its own harness lists this test.
fn is_listed(line: &str, name: &str) -> bool {
    let is_path = |line: &str| {
        let of_path = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
        line.chars().all(of_path) && line.ends_with(&format!("::{name}"))
    };
    line == name
        || line == format!("\"{name}\",")
        || line.starts_with(&format!("(\"{name}\","))
        || line.contains(&format!("[(\"{name}\","))
        || line.contains(&format!("Trial::test(\"{name}\""))
        || is_path(line.trim_end_matches(','))
}
