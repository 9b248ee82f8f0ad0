//! Logs of real tools, shortened; `generate.py` in their directory generates the long ones.

use std::collections::BTreeMap;

use ostler_model::{StreamName, Timestamp};

use super::*;

const FAILURES: &str = include_str!("../tests/fixtures/logs/failures.json");

macro_rules! logs {
    ($($name:literal),* $(,)?) => {
        [$(($name, include_str!(concat!("../tests/fixtures/logs/", $name, ".log")))),*]
    };
}

const LOGS: [(&str, &str); 9] = logs![
    "cargo-check",
    "cargo-test",
    "pytest",
    "unittest",
    "node-spec",
    "node-tap",
    "npm",
    "make",
    "javac",
];

fn rows_of(log: &str) -> Vec<OutputRow> {
    let mut offset = 0;
    let mut fold = RedrawFolder::default();
    for line in log.split_inclusive('\n') {
        fold.push_line(OutputRow {
            at: Timestamp::UNIX_EPOCH,
            stream: StreamName::Stdout,
            offset,
            lines: 1,
            repeats: 1,
            binary: false,
            is_cut: false,
            bytes: line.len() as u64,
            text: line.trim_end_matches('\n').to_owned(),
        });
        offset += line.len() as u64;
    }
    fold.finish()
}

fn shown(rows: Vec<OutputRow>, chars: usize) -> String {
    let budget = ExcerptBudget::new(chars, 500);
    let blocks = excerpt(ExcerptInput::from_rows(rows), budget).blocks;
    let text = blocks.join("\n");
    assert!(text.chars().count() <= chars);
    text
}

/// The failures of a log that are not shown completely.
fn missing_failures(name: &str, text: &str) -> Vec<Vec<String>> {
    let all: BTreeMap<String, Vec<Vec<String>>> = serde_json::from_str(FAILURES).unwrap();
    let is_shown = |failure: &&Vec<String>| failure.iter().all(|part| text.contains(part.as_str()));
    let failures = all[name].iter().filter(|failure| !is_shown(failure));
    failures.cloned().collect()
}

#[test]
fn real_logs_keep_what_failed() {
    for (name, log) in LOGS {
        assert!(
            missing_failures(name, log).is_empty(),
            "{name}: the log tells all"
        );
        let text = shown(rows_of(log), 2_000);
        let untold = missing_failures(name, &text);
        assert!(untold.is_empty(), "{name}: {untold:?} of\n{text}");
    }
}

#[test]
fn an_excerpt_reads_like_this() {
    let (_, make) = LOGS[7];
    insta::assert_snapshot!(shown(rows_of(make), 2_000));
}
