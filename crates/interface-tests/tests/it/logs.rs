//! Logs of 11,000 lines and more, printed by real tools, are answered within the budget and with
//! the failure lines. `fixtures/logs/generate.py` creates the projects; `cargo xtask bench logs`
//! prints the table.

use std::collections::HashSet;
use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::common::{ServerFixture, text};
use serde_json::{Value, json};

/// The most characters of an answer.
const REPLY_CHARS: usize = 12_000;
/// The fewest lines of a log.
const LOG_LINES: usize = 11_000;

const GENERATE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/tests/it/fixtures/logs/generate.py"
);

/// Runs the tool on a project of this kind; stores its output, and returns the expected failures.
fn printed(kind: &str, dir: &Path) -> Vec<Vec<String>> {
    let project = dir.join("project");
    std::fs::create_dir(&project).unwrap();
    let made = Command::new("python3")
        .arg(GENERATE)
        .arg(kind)
        .arg(&project)
        .output()
        .unwrap();
    assert!(made.status.success(), "{made:?}");
    let plan: Value = serde_json::from_slice(&made.stdout).unwrap();
    let words: Vec<String> = serde_json::from_value(plan["run"].clone()).unwrap();
    let status = Command::new(&words[0])
        .args(&words[1..])
        .current_dir(&project)
        .env("CARGO_TARGET_DIR", project.join("target"))
        .env_remove("RUSTFLAGS")
        .env_remove("NODE_TEST_CONTEXT")
        .stdin(Stdio::null())
        .stdout(File::create(dir.join("out")).unwrap())
        .stderr(File::create(dir.join("err")).unwrap())
        .status()
        .unwrap();
    assert!(!status.success(), "{kind} was to fail");
    serde_json::from_value(plan["failures"].clone()).unwrap()
}

fn lines(path: &Path) -> Vec<String> {
    let bytes = std::fs::read(path).unwrap();
    let text = String::from_utf8_lossy(&bytes).into_owned();
    text.lines().map(str::to_owned).collect()
}

fn count(fields: &Value, name: &str) -> u64 {
    fields[name]["lines"].as_u64().unwrap_or_default()
}

async fn check(kind: &str) {
    let bench = ServerFixture::new().await;
    let dir = bench.work.path();
    let failures = printed(kind, dir);
    let (out, err) = (lines(&dir.join("out")), lines(&dir.join("err")));
    let total = out.len() + err.len();
    assert!(total >= LOG_LINES, "{kind} printed {total} lines");

    let mut client = bench.client("logs").await;
    let script = "cat err >&2; cat out; exit 1";
    let result = client.execute(script, json!({})).await;
    let answer = text(&result);

    assert!(answer.chars().count() <= REPLY_CHARS, "{kind}");
    for failure in &failures {
        let response = failure.iter().all(|part| answer.contains(part.as_str()));
        assert!(response, "{kind}: {failure:?} is not in\n{answer}");
    }
    for end in [out.first(), out.last(), err.first(), err.last()] {
        let end = end.map_or("", String::as_str);
        assert!(answer.contains(end), "{kind}: {end:?} is missing");
    }
    // Every line of the log is in the answer or counted.
    let all: HashSet<&str> = out.iter().chain(&err).map(String::as_str).collect();
    let is_of_log = |line: &&str| {
        let line = line.rsplit_once(" [… ").map_or(*line, |(line, _)| line);
        all.contains(line)
    };
    let blocks = answer.split("\n-----\n");
    let shown = blocks.flat_map(str::lines).filter(is_of_log).count() as u64;
    let fields = &result["_meta"]["ostler/result"];
    let omitted = count(fields, "stdout_omitted") + count(fields, "stderr_omitted");
    let missing = (total as u64).abs_diff(shown + omitted);
    assert!(missing <= 2, "{kind}: {shown} + {omitted} of {total}");
    client.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_log_of_cargo_keeps_what_failed() {
    check("cargo-check").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_log_of_python_tests_keeps_what_failed() {
    check("unittest").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_log_of_node_tests_keeps_what_failed() {
    check("node-tap").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_log_of_npm_keeps_what_failed() {
    check("npm").await;
}

/// Ten thousand updates of three rows cost three lines.
#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_redraws_of_three_rows_cost_three_lines() {
    let bench = ServerFixture::new().await;
    let failures = printed("bars", bench.work.path());
    let mut client = bench.client("bars").await;
    let result = client.execute("cat out; exit 1", json!({})).await;
    let answer = text(&result);
    for part in failures.iter().flatten() {
        assert!(answer.contains(part.as_str()), "{answer}");
    }
    assert!(answer.lines().count() <= 12, "{answer}");
    assert!(answer.contains("redraws overwrote"), "{answer}");
    client.close().await;
}
