//! Files of any content: every query returns, nothing panics and no read is endless.

use std::fs;
use std::path::{Path, PathBuf};

use ostler_fuzz::fuzz;
use ostler_journal::{Journal, Ledger, LedgerCursor, LedgerEntry, LedgerReader, ReadError};
use ostler_model::{Event, ExecutionId, Owner, Principal, RequestChannel, StreamName, Timestamp};

use crate::common::{JournalOp, write};
use crate::damage::{ask_everything, read_all};

const FILES: [&str; 2] = ["output.0.seg", "output.0.idx"];
/// The number of ledger entries read at once.
const ENTRIES: usize = 16;

fn corpus(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fuzz")
        .join(target)
}

/// A segment and its index, preceded by the segment's length.
fn joined(segment: &[u8], index: &[u8]) -> Vec<u8> {
    let length = u32::try_from(segment.len()).expect("short");
    [&length.to_le_bytes(), segment, index].concat()
}

fn parted(input: &[u8]) -> (&[u8], &[u8]) {
    let Some((length, rest)) = input.split_first_chunk::<4>() else {
        return (input, &[]);
    };
    let length = usize::try_from(u32::from_le_bytes(*length)).unwrap_or(usize::MAX);
    rest.split_at(length.min(rest.len()))
}

fn written(ops: &[JournalOp]) -> Vec<u8> {
    let dir = tempfile::tempdir().expect("a directory");
    drop(write(dir.path(), ops, 1 << 20));
    let [segment, index] = FILES.map(|name| fs::read(dir.path().join(name)).expect("there"));
    joined(&segment, &index)
}

fn op(at_ns: i64, stream: StreamName, text: &str) -> JournalOp {
    JournalOp {
        at_ns,
        stream,
        bytes: text.as_bytes().to_vec(),
    }
}

#[test]
fn fuzz_segment_and_index() {
    let seeds = vec![
        written(&[op(1, StreamName::Stdout, "a\n")]),
        written(&[
            op(1_000, StreamName::Stdout, "one\ntw"),
            op(1_001, StreamName::Stderr, "error a\n"),
            op(1_005, StreamName::Stdout, "o\nthree"),
            op(1_009, StreamName::Stdin, "\n"),
        ]),
    ];
    fuzz(&corpus("segment"), seeds, |input| {
        let dir = tempfile::tempdir().expect("a directory");
        let (segment, index) = parted(input);
        fs::write(dir.path().join(FILES[0]), segment).expect("written");
        fs::write(dir.path().join(FILES[1]), index).expect("written");
        let Ok(journal) = Journal::open(dir.path()) else {
            return;
        };
        if !matches!(journal.stats(), Err(ReadError::Version { .. })) {
            read_all(&journal);
            ask_everything(&journal);
        }
    });
}

fn ledger(entries: i64) -> Vec<u8> {
    let dir = tempfile::tempdir().expect("a directory");
    let mut ledger = Ledger::open(dir.path()).expect("opened");
    for at in 0..entries {
        let entry = LedgerEntry {
            at: Timestamp::from_second(at).expect("a time"),
            execution: Some(ExecutionId::mint()),
            by: Owner {
                principal: Principal::unix(0),
                project: None,
                session: None,
                task: None,
                channel: RequestChannel::Local,
            },
            event: Event::Started { attempt: 1, pid: 7 },
            detail: [("command".to_owned(), "echo hi".into())].into(),
        };
        ledger.append(&entry).expect("appended");
    }
    fs::read(dir.path().join("0.seg")).expect("there")
}

#[test]
fn fuzz_ledger() {
    let seeds = vec![ledger(1), ledger(5)];
    let kept = seeds.clone();
    fuzz(&corpus("ledger"), seeds, move |input| {
        let dir = tempfile::tempdir().expect("a directory");
        fs::write(dir.path().join("0.seg"), input).expect("written");
        let reader = LedgerReader::open(dir.path());
        let mut cursor = LedgerCursor(0);
        while let Ok(page) = reader.read(cursor, ENTRIES) {
            if page.records.is_empty() {
                break;
            }
            assert!(page.next > cursor, "reading goes on");
            cursor = page.next;
        }
        if let Ok(verified) = reader.verify() {
            let has_entries = verified.end.0 > verified.first;
            let written = kept
                .iter()
                .any(|seed| entries(seed).starts_with(&entries(input)));
            assert!(
                !has_entries || written,
                "a changed ledger is taken for whole"
            );
        }
    });
}

/// The whole lines after the header. A torn one at the end is not an entry.
fn entries(file: &[u8]) -> Vec<&[u8]> {
    let lines = file.split_inclusive(|byte| *byte == b'\n');
    lines.skip(1).filter(|line| line.ends_with(b"\n")).collect()
}
