//! Compatibility with files of earlier versions. Each directory under `tests/fixtures` is one
//! version; none is ever changed.
//!
//! `OSTLER_WRITE_FIXTURES=<directory>` writes the files of the present version, for the day on
//! which the version changes.

use std::collections::BTreeMap;
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use ostler_journal::{
    ByteQuery, Durability, EventWriter, HeadKey, HeadWriter, Journal, Ledger, LedgerCursor,
    LedgerEntry, LedgerReader, LineQuery, OpenLineMode, OutputWriter, SegmentLimits, StreamSet,
    read_events, retention,
};
use ostler_model::{
    Cursor, Event, EventRecord, ExecutionId, Owner, Principal, StreamName, Termination,
    TerminationCause,
};

use crate::common::at;

const SECOND_NS: i64 = 1_000_000_000;

fn fixtures(version: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures")
        .join(version)
}

fn events() -> Vec<EventRecord> {
    let record = |seq, offset, event| EventRecord {
        seq,
        at: at(SECOND_NS),
        offset,
        event,
    };
    vec![
        record(
            0,
            0,
            Event::Created {
                missing: Vec::new(),
            },
        ),
        record(
            1,
            0,
            Event::Started {
                attempt: 1,
                pid: 4242,
            },
        ),
        record(
            2,
            29,
            Event::Finished {
                ending: Termination {
                    cause: TerminationCause::Exited,
                    code: Some(3),
                    signal: None,
                },
            },
        ),
    ]
}

fn entries() -> Vec<LedgerEntry> {
    let entry = |event| LedgerEntry {
        at: at(SECOND_NS),
        execution: Some(ExecutionId::from_bytes([1; 16])),
        by: Owner {
            principal: Principal::unix(1000),
            project: Some("demo".to_owned()),
            session: None,
            task: None,
            channel: ostler_model::RequestChannel::Local,
        },
        event,
        detail: BTreeMap::from([("command".to_owned(), "echo 'hi'".into())]),
    };
    events()
        .into_iter()
        .map(|record| entry(record.event))
        .collect()
}

/// A ledger, its heads and their key. The bytes of the key are those from 0 on.
fn write_audited(dir: &Path) {
    std::fs::create_dir_all(dir).unwrap();
    let key = dir.join("audit.key");
    std::fs::write(&key, (0..64).collect::<Vec<u8>>()).unwrap();
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
    let key = HeadKey::read(&key).unwrap().unwrap();
    let mut ledger = Ledger::open(&dir.join("ledger")).unwrap();
    let heads = HeadWriter::open(&dir.join("ledger-heads"), key).unwrap();
    ledger.record_heads(heads, at(SECOND_NS)).unwrap();
    for entry in entries() {
        ledger.append(&entry).unwrap();
    }
    ledger.record_head(at(2 * SECOND_NS)).unwrap();
}

/// Writes two segments, the first compressed, and a truncation point in a second journal.
fn write_all(dir: &Path) {
    let output = dir.join("output");
    std::fs::create_dir_all(&output).unwrap();
    let handle = std::fs::File::open(&output).unwrap();
    let mut writer = OutputWriter::create(handle.as_fd(), SegmentLimits::default()).unwrap();
    let filler = "all work and no play\n".repeat(400);
    writer
        .append(SECOND_NS, StreamName::Stdout, filler.as_bytes())
        .unwrap();
    retention::compress(&output, Durability::PageCache).unwrap();
    let mut writer = OutputWriter::resume(handle.as_fd(), SegmentLimits::default()).unwrap();
    writer
        .append(2 * SECOND_NS, StreamName::Stdout, b"one\ntw")
        .unwrap();
    writer
        .append(3 * SECOND_NS, StreamName::Stderr, b"oops\xff\n")
        .unwrap();
    writer
        .append(4 * SECOND_NS, StreamName::Stdout, b"o\nprompt: ")
        .unwrap();
    let cleared = dir.join("cleared");
    std::fs::create_dir_all(&cleared).unwrap();
    let handle = std::fs::File::open(&cleared).unwrap();
    let mut writer = OutputWriter::create(handle.as_fd(), SegmentLimits::default()).unwrap();
    writer
        .append(SECOND_NS, StreamName::Pty, b"secret\n")
        .unwrap();
    Journal::open(&cleared).unwrap().clear().unwrap();
    writer
        .append(SECOND_NS, StreamName::Pty, b"kept\n")
        .unwrap();
    let (mut writer, _) = EventWriter::open(&output).unwrap();
    writer.append(&events()).unwrap();
    let mut ledger = Ledger::open(&dir.join("ledger")).unwrap();
    for entry in entries() {
        ledger.append(&entry).unwrap();
    }
}

fn check(dir: &Path) {
    let journal = Journal::open(&dir.join("output")).unwrap();
    let query = LineQuery {
        tail: Some(5),
        unfinished: OpenLineMode::Final,
        ..LineQuery::default()
    };
    let page = journal.lines(&query).unwrap();
    let lines: Vec<(u64, &[u8], bool)> = page
        .lines
        .iter()
        .map(|line| (line.number, line.bytes.as_slice(), line.terminated))
        .collect();
    assert_eq!(
        lines,
        [
            (400, &b"all work and no play"[..], true),
            (401, b"one", true),
            (402, b"two", true),
            (1, b"oops\xff", true),
            (403, b"prompt: ", false),
        ]
    );
    assert_eq!(page.lines[3].at, at(3 * SECOND_NS));
    let page = journal
        .read(&ByteQuery {
            streams: StreamSet::ALL,
            ..ByteQuery::starting_at(Cursor::START)
        })
        .unwrap();
    assert_eq!(
        (page.chunks.len(), page.next.offset, page.damaged),
        (4, 8_400 + 22, None)
    );
    let cleared = Journal::open(&dir.join("cleared")).unwrap();
    let page = cleared.lines(&LineQuery::default()).unwrap();
    assert_eq!(
        (
            page.lines.len(),
            page.lines[0].bytes.as_slice(),
            page.lines[0].number
        ),
        (1, &b"kept"[..], 2)
    );
    assert_eq!(read_events(&dir.join("output")).unwrap(), events());
    let reader = LedgerReader::open(&dir.join("ledger"));
    assert_eq!(reader.verify().unwrap().end, LedgerCursor(3));
    let page = reader.read(LedgerCursor(0), 10).unwrap();
    assert_eq!(
        page.records
            .into_iter()
            .map(|record| record.entry)
            .collect::<Vec<_>>(),
        entries()
    );
}

#[test]
fn heads_of_version_1_are_read_and_written_as_ever() {
    let (then, now) = (fixtures("heads-v1"), tempfile::tempdir().unwrap());
    write_audited(now.path());
    if let Some(place) = std::env::var_os("OSTLER_WRITE_FIXTURES") {
        write_audited(&Path::new(&place).join("heads"));
    }
    for file in ["audit.key", "ledger/0.seg", "ledger-heads"] {
        let bytes = |dir: &Path| std::fs::read(dir.join(file)).unwrap();
        assert!(
            bytes(&then) == bytes(now.path()),
            "{file} changed: give it a new version"
        );
    }
    // A checkout does not keep the mode of the key.
    let key = HeadKey::read(&now.path().join("audit.key")).unwrap();
    let reader = LedgerReader::open(&then.join("ledger"));
    let report = reader
        .audit(&then.join("ledger-heads"), key.as_ref())
        .unwrap();
    assert_eq!(report.findings, []);
    assert_eq!((report.count, report.heads, report.covered), (3, 2, 3));
}

#[test]
fn version_1_is_read() {
    check(&fixtures("v1"));
}

#[test]
fn what_is_written_now_is_read() {
    let dir = tempfile::tempdir().unwrap();
    write_all(dir.path());
    check(dir.path());
    if let Some(place) = std::env::var_os("OSTLER_WRITE_FIXTURES") {
        write_all(Path::new(&place));
    }
}

/// The present version still writes the very bytes of the fixtures, except for the compressed
/// segment, which depends on the compressor.
#[test]
fn version_1_is_written_as_ever() {
    let dir = tempfile::tempdir().unwrap();
    write_all(dir.path());
    for file in [
        "output/output.0.idx",
        "output/output.1.idx",
        "output/output.1.seg",
        "output/events.jsonl",
        "cleared/output.0.idx",
        "cleared/output.floor",
        "ledger/0.seg",
    ] {
        let (now, then) = (
            std::fs::read(dir.path().join(file)),
            std::fs::read(fixtures("v1").join(file)),
        );
        assert!(
            now.unwrap() == then.unwrap(),
            "{file} changed: give it a new version"
        );
    }
}
