//! The same bytes and queries: `tail`, `head`, `grep` and `sed` must agree.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::common::{JournalOp, write};
use fastrand::Rng;
use ostler_journal::{GrepMode, Journal, JournalLine, LineQuery, OpenLineMode, Pattern};
use ostler_model::StreamName;

/// A log of this many lines of words and numbers, in chunks that split lines anywhere.
fn log(lines: u32) -> Vec<u8> {
    const WORDS: [&str; 8] = [
        "error",
        "warning:",
        "ready",
        "listening",
        "grün",
        "GET",
        "/index.html",
        "200",
    ];
    let mut rng = Rng::with_seed(42);
    let mut text = Vec::new();
    for number in 0..lines {
        text.extend_from_slice(format!("{number} ").as_bytes());
        for _ in 0..rng.usize(..12) {
            text.extend_from_slice(WORDS[rng.usize(..WORDS.len())].as_bytes());
            text.push(b' ');
        }
        if rng.usize(..50) == 0 {
            text.extend_from_slice(b"\xff\xfe raw \r");
        }
        text.push(b'\n');
    }
    text.extend_from_slice(b"no newline at the end error");
    text
}

struct Case {
    _dir: tempfile::TempDir,
    journal: Journal,
    file: PathBuf,
}

fn case(lines: u32) -> Case {
    case_of(log(lines))
}

fn case_of(text: Vec<u8>) -> Case {
    let dir = tempfile::tempdir().unwrap();
    let mut rng = Rng::with_seed(42);
    let mut ops = Vec::new();
    let mut rest = text.as_slice();
    while !rest.is_empty() {
        let len = (rng.usize(..3_000) + 1).min(rest.len());
        ops.push(JournalOp {
            at_ns: i64::try_from(ops.len()).unwrap(),
            stream: StreamName::Stdout,
            bytes: rest[..len].to_vec(),
        });
        rest = &rest[len..];
    }
    // Small segments, so that lines cross their boundaries.
    let journal = write(dir.path(), &ops, 64 * 1024);
    assert!(dir.path().join("output.3.seg").exists());
    let file = dir.path().join("all.txt");
    std::fs::write(&file, text).unwrap();
    Case {
        _dir: dir,
        journal,
        file,
    }
}

fn output_of(program: &str, args: &[&str], file: &Path) -> Vec<u8> {
    let output = Command::new(program)
        .args(args)
        .env("LC_ALL", "C.UTF-8")
        .stdin(Stdio::from(File::open(file).unwrap()))
        .output()
        .unwrap();
    output.stdout
}

fn joined(lines: &[JournalLine]) -> Vec<u8> {
    let mut text = Vec::new();
    for line in lines {
        text.extend_from_slice(&line.bytes);
        text.push(b'\n');
    }
    text
}

/// All pages of a query.
fn ask(journal: &Journal, query: &LineQuery) -> Vec<JournalLine> {
    let mut query = LineQuery {
        unfinished: OpenLineMode::Final,
        max_lines: 777,
        ..query.clone()
    };
    let mut all = Vec::new();
    loop {
        let page = journal.lines(&query).unwrap();
        query.from = Some(page.next);
        for left in [&mut query.head, &mut query.tail].into_iter().flatten() {
            *left -= page.lines.len() as u64;
        }
        all.extend(page.lines);
        if !page.more {
            return all;
        }
    }
}

fn same(got: &[u8], mut want: Vec<u8>, what: &str) {
    if !want.is_empty() && !want.ends_with(b"\n") {
        want.push(b'\n');
    }
    assert!(
        got == want,
        "{what}: {} bytes against {}",
        got.len(),
        want.len()
    );
}

#[test]
fn tail_and_head_agree() {
    let case = case(9_000);
    for count in [0u64, 1, 2, 99, 1_000, 8_999, 9_001, 20_000] {
        let number = count.to_string();
        let tail = LineQuery {
            tail: Some(count),
            ..LineQuery::default()
        };
        same(
            &joined(&ask(&case.journal, &tail)),
            output_of("tail", &["-n", &number], &case.file),
            &format!("tail {count}"),
        );
        let head = LineQuery {
            head: Some(count),
            ..LineQuery::default()
        };
        same(
            &joined(&ask(&case.journal, &head)),
            output_of("head", &["-n", &number], &case.file),
            &format!("head {count}"),
        );
    }
}

#[test]
fn grep_agrees() {
    let case = case(9_000);
    for pattern in [
        "error",
        "err.r ready",
        "^12",
        "GET$",
        "[0-9]{4} (error|warning)",
        "listening ",
        "nowhere",
        "grün",
        "html 200 2",
        "^$",
        "(.)\\1{2}",
        "x*",
    ] {
        let query = LineQuery {
            grep: Some(Pattern::new(pattern).unwrap()),
            ..LineQuery::default()
        };
        let lines = ask(&case.journal, &query);
        same(
            &joined(&lines),
            output_of("grep", &["-aE", pattern], &case.file),
            pattern,
        );
        let numbered = output_of("grep", &["-aEn", pattern], &case.file);
        let numbers: Vec<u64> = numbered
            .split(|&byte| byte == b'\n')
            .filter_map(|line| {
                let colon = line.iter().position(|&byte| byte == b':')?;
                std::str::from_utf8(&line[..colon]).ok()?.parse().ok()
            })
            .collect();
        assert_eq!(
            lines.iter().map(|line| line.number).collect::<Vec<_>>(),
            numbers,
            "{pattern}"
        );
        let content = LineQuery {
            grep_mode: GrepMode::Content,
            max_lines: u64::MAX,
            max_bytes: u64::MAX,
            ..query.clone()
        };
        let page = case
            .journal
            .lines(&LineQuery {
                unfinished: OpenLineMode::Final,
                ..content
            })
            .unwrap();
        same(
            &joined(&page.lines),
            output_of("grep", &["-aoE", pattern], &case.file),
            &format!("-o {pattern}"),
        );
        let last = LineQuery {
            tail: Some(5),
            ..query
        };
        let grepped = output_of("grep", &["-aE", pattern], &case.file);
        let file = case.file.with_extension("grepped");
        std::fs::write(&file, grepped).unwrap();
        same(
            &joined(&ask(&case.journal, &last)),
            output_of("tail", &["-n", "5"], &file),
            &format!("tail of {pattern}"),
        );
    }
}

/// A line without colours and the carriage return of a terminal.
fn uncoloured(line: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(line);
    let text = text.replace("\x1b[31m", "").replace("\x1b[0m", "");
    text.trim_end_matches('\r').as_bytes().to_vec()
}

/// As [`log`], with lines in colours and lines of a terminal among them.
fn coloured_log(lines: u32) -> Vec<u8> {
    let mut rng = Rng::with_seed(7);
    let mut text = Vec::new();
    for number in 0..lines {
        let line = match rng.usize(..12) {
            0 => format!("\x1b[31mFAIL\x1b[0m: test {number}\n"),
            1 => format!("test {number} PASS\r\n"),
            2 => "\r\n".to_owned(),
            3 => format!("FAIL: plain {number}\n"),
            _ => format!("nothing of interest {number}\n"),
        };
        text.extend_from_slice(line.as_bytes());
    }
    text
}

#[test]
fn grep_finds_lines_as_they_read() {
    let text = coloured_log(9_000);
    let plain: Vec<u8> = text
        .split_inclusive(|&byte| byte == b'\n')
        .flat_map(|line| [uncoloured(&line[..line.len() - 1]).as_slice(), b"\n"].concat())
        .collect();
    let case = case_of(text);
    let file = case.file.with_extension("plain");
    std::fs::write(&file, plain).unwrap();
    for pattern in [
        "FAIL: ",
        "^FAIL: test",
        "PASS$",
        "^$",
        "L: (test|plain) 1.*7$",
        "nowhere",
    ] {
        let query = LineQuery {
            grep: Some(Pattern::new(pattern).unwrap().with_plain_text(uncoloured)),
            ..LineQuery::default()
        };
        let found = joined(&ask(&case.journal, &query));
        let read: Vec<u8> = found
            .split_inclusive(|&byte| byte == b'\n')
            .flat_map(|line| [uncoloured(&line[..line.len() - 1]).as_slice(), b"\n"].concat())
            .collect();
        let expected = output_of("grep", &["-aE", pattern], &file);
        assert_eq!(expected.is_empty(), pattern == "nowhere");
        same(&read, expected, pattern);
        let content = LineQuery {
            grep_mode: GrepMode::Content,
            max_lines: u64::MAX,
            max_bytes: u64::MAX,
            ..query
        };
        let page = case.journal.lines(&content).unwrap();
        let expected = output_of("grep", &["-aoE", pattern], &file);
        same(&joined(&page.lines), expected, &format!("-o {pattern}"));
    }
}

#[test]
fn look_around_agrees() {
    let case = case(6_000);
    for pattern in ["error(?! ready)", "(?<=GET )/index", "(error) \\1"] {
        let query = LineQuery {
            grep: Some(Pattern::new(pattern).unwrap()),
            budget: Some(std::time::Duration::from_secs(60)),
            ..LineQuery::default()
        };
        same(
            &joined(&ask(&case.journal, &query)),
            output_of("grep", &["-aP", pattern], &case.file),
            pattern,
        );
    }
}

#[test]
fn sed_agrees_on_ranges() {
    let case = case(9_000);
    let all = ask(&case.journal, &LineQuery::default());
    for (from, until) in [(1, 1), (5, 20), (4_000, 4_100), (8_990, 9_001)] {
        let first = all[from - 1].offset;
        let cursor = ostler_model::Cursor {
            offset: first,
            event: 0,
        };
        let query = LineQuery {
            from: Some(cursor),
            head: Some((until - from + 1) as u64),
            ..LineQuery::default()
        };
        same(
            &joined(&ask(&case.journal, &query)),
            output_of("sed", &["-n", &format!("{from},{until}p")], &case.file),
            "sed",
        );
    }
}
