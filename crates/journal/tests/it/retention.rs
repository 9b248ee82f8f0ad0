//! Trimming, clearing and compression: kept output reads as before, missing output is reported.

use std::os::fd::AsFd;
use std::path::Path;

use crate::common::{JournalOp, write};
use ostler_journal::retention::{self, OutputPolicy};
use ostler_journal::{
    ByteQuery, Durability, Gap, Journal, JournalLine, LineQuery, OpenLineMode, OutputWriter,
    Pattern, SegmentLimits, StreamSet,
};
use ostler_model::{Cursor, StreamName};
use proptest::prelude::*;

const SEGMENT_BYTES: u64 = 64 * 1024;

/// Ten segments of numbered lines on two streams, some lines split by the other stream.
fn ten_segments() -> Vec<JournalOp> {
    let mut ops = Vec::new();
    let mut number = 0;
    let mut bytes = 0;
    while bytes < 10 * SEGMENT_BYTES {
        let stream = if number % 3 == 0 {
            StreamName::Stderr
        } else {
            StreamName::Stdout
        };
        let text = format!(
            "line {number} of the log, a rather long one to fill segments{}",
            if number % 7 == 0 { "" } else { "\n" }
        );
        bytes += text.len() as u64;
        ops.push(JournalOp {
            at_ns: i64::from(number),
            stream,
            bytes: text.into_bytes(),
        });
        number += 1;
    }
    ops
}

fn pages(journal: &Journal) -> (Vec<(u64, u8)>, Vec<Gap>) {
    let mut query = ByteQuery {
        streams: StreamSet::ALL,
        max_bytes: 10_000,
        ..ByteQuery::starting_at(Cursor::START)
    };
    let (mut bytes, mut gaps) = (Vec::new(), Vec::new());
    loop {
        let page = journal.read(&query).unwrap();
        assert_eq!(page.damaged, None);
        gaps.extend(page.gap);
        bytes.extend(
            page.chunks
                .into_iter()
                .flat_map(|chunk| (chunk.offset..).zip(chunk.bytes)),
        );
        query.from = page.next;
        if !page.more {
            return (bytes, gaps);
        }
    }
}

fn all_lines(journal: &Journal, query: LineQuery) -> (Vec<JournalLine>, Vec<Gap>) {
    let mut query = LineQuery {
        unfinished: OpenLineMode::Final,
        max_lines: 100,
        ..query
    };
    let (mut lines, mut gaps) = (Vec::new(), Vec::new());
    loop {
        let page = journal.lines(&query).unwrap();
        gaps.extend(page.gap);
        lines.extend(page.lines);
        query.from = Some(page.next);
        if !page.more {
            lines.sort_by_key(|line| line.offset);
            return (lines, gaps);
        }
    }
}

fn flat(ops: &[JournalOp]) -> Vec<(u64, u8)> {
    (0..)
        .zip(ops.iter().flat_map(|op| op.bytes.clone()))
        .collect()
}

#[test]
fn the_middle_goes_and_is_said_to_be_gone() {
    let dir = tempfile::tempdir().unwrap();
    let ops = ten_segments();
    let journal = write(dir.path(), &ops, SEGMENT_BYTES);
    let (before, _) = all_lines(&journal, LineQuery::default());
    let policy = OutputPolicy {
        head_bytes: SEGMENT_BYTES / 2,
        tail_bytes: 3 * SEGMENT_BYTES,
    };
    let gone = retention::trim(dir.path(), policy).unwrap().unwrap();
    assert_eq!(retention::trim(dir.path(), policy).unwrap(), None);
    let (bytes, gaps) = pages(&journal);
    assert_eq!(gaps, [gone]);
    let kept = flat(&ops)
        .into_iter()
        .filter(|(offset, _)| *offset < gone.from || *offset >= gone.to);
    assert!(bytes == kept.collect::<Vec<_>>());
    let (after, gaps) = all_lines(&journal, LineQuery::default());
    assert_eq!(gaps, [gone]);
    // Whole lines are as before, number and time included; cut ones are unterminated or begin late.
    for line in &after {
        let same = before.iter().find(|one| one.offset == line.offset);
        assert!(
            same == Some(line) || !line.terminated || line.offset >= gone.to,
            "{line:?}"
        );
        assert!(line.offset < gone.from || line.offset >= gone.to);
    }
    let whole = before
        .iter()
        .filter(|line| line.offset + 200 < gone.from || line.offset > gone.to + 400);
    assert!(whole.clone().count() > 1_000);
    for line in whole {
        assert!(after.contains(line), "{line:?}");
    }
    let stats = journal.stats().unwrap();
    assert_eq!(stats.dropped_bytes, gone.to - gone.from);
    let tail = LineQuery {
        tail: Some(10),
        unfinished: OpenLineMode::Final,
        ..LineQuery::default()
    };
    let page = journal.lines(&tail).unwrap();
    assert_eq!((page.gap, page.lines.len()), (None, 10));
    let far = LineQuery {
        tail: Some(1_000_000),
        max_lines: u64::MAX,
        max_bytes: u64::MAX,
        ..tail
    };
    let page = journal.lines(&far).unwrap();
    assert_eq!(
        page.gap,
        Some(Gap {
            from: 0,
            to: gone.to
        })
    );
    let counted = LineQuery {
        max_lines: 1,
        ..LineQuery::default()
    };
    let page = journal.lines(&counted).unwrap();
    assert!(page.omitted_lines > 1_000 && page.omitted_lines < after.len() as u64);
}

#[test]
fn compressed_reads_as_before() {
    let dir = tempfile::tempdir().unwrap();
    let ops = ten_segments();
    let journal = write(dir.path(), &ops, SEGMENT_BYTES);
    let grep = || LineQuery {
        grep: Some(Pattern::new("line 12.*log").unwrap()),
        ..LineQuery::default()
    };
    let before = (
        pages(&journal),
        all_lines(&journal, LineQuery::default()),
        all_lines(&journal, grep()),
        journal.stats().unwrap(),
    );
    let (bytes, inodes) = retention::measure(dir.path()).unwrap();
    assert!(retention::compress(dir.path(), Durability::PageCache).unwrap() > 5 * SEGMENT_BYTES);
    assert_eq!(
        retention::compress(dir.path(), Durability::PageCache).unwrap(),
        0
    );
    let (smaller, same) = retention::measure(dir.path()).unwrap();
    assert!(smaller < bytes / 2 && same == inodes);
    assert!(
        dir.path().join("output.0.seg.zst").exists() && !dir.path().join("output.0.seg").exists()
    );
    let after = (
        pages(&journal),
        all_lines(&journal, LineQuery::default()),
        all_lines(&journal, grep()),
        journal.stats().unwrap(),
    );
    assert!(before == after);
    // A later attempt continues after it.
    let handle = std::fs::File::open(dir.path()).unwrap();
    let mut writer = OutputWriter::resume(handle.as_fd(), SegmentLimits::default()).unwrap();
    assert_eq!(writer.end(), before.3.end);
    writer
        .append(9_999_999, StreamName::Stdout, b"more\n")
        .unwrap();
    let tail = LineQuery {
        tail: Some(1),
        ..LineQuery::default()
    };
    assert_eq!(journal.lines(&tail).unwrap().lines[0].bytes, b"more");
    retention::remove(dir.path()).unwrap();
    assert!(!dir.path().exists());
    retention::remove(dir.path()).unwrap();
}

fn lines_now(dir: &Path) -> Vec<(u64, u64, Vec<u8>)> {
    let query = LineQuery {
        streams: StreamSet::ALL,
        unfinished: OpenLineMode::Final,
        ..LineQuery::default()
    };
    let lines = Journal::open(dir).unwrap().lines(&query).unwrap().lines;
    lines
        .into_iter()
        .map(|line| (line.offset, line.number, line.bytes))
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn cleared_at_any_time_the_rest_goes_on(one in crate::common::ops(20), two in crate::common::ops(20), three in crate::common::ops(20), compress: bool, segment in 16u64..300) {
        let dir = tempfile::tempdir().unwrap();
        let handle = std::fs::File::open(dir.path()).unwrap();
        let mut writer = OutputWriter::create(handle.as_fd(), SegmentLimits { segment_bytes: segment }).unwrap();
        let journal = Journal::open(dir.path()).unwrap();
        let put = |writer: &mut OutputWriter, ops: &[JournalOp], later: i64| {
            for op in ops { writer.append(op.at_ns + later, op.stream, &op.bytes).unwrap(); }
        };
        put(&mut writer, &one, 0);
        let floor = writer.end();
        prop_assert_eq!(journal.clear().unwrap(), Gap { from: 0, to: floor });
        prop_assert_eq!((journal.start().unwrap(), journal.end().unwrap()), (floor, floor));
        prop_assert_eq!(lines_now(dir.path()), []);
        put(&mut writer, &two, 100);
        if compress { retention::compress(dir.path(), Durability::PageCache).unwrap(); }
        // So does a later attempt.
        let mut writer = OutputWriter::resume(handle.as_fd(), SegmentLimits { segment_bytes: segment }).unwrap();
        put(&mut writer, &three, 200);
        let shift = |ops: &[JournalOp], later| ops.iter().map(move |op| JournalOp { at_ns: op.at_ns + later, ..op.clone() }).collect::<Vec<_>>();
        let all: Vec<JournalOp> = [one, shift(&two, 100), shift(&three, 200)].concat();
        let model = crate::common::to_lines(&crate::common::lines(&all));
        let mut want = Vec::new();
        for line in &model {
            // A line that began below the truncation point begins with its first byte above it.
            let bytes: Vec<(u64, u8)> = flat_of(&all, line).into_iter().filter(|(offset, _)| *offset >= floor).collect();
            if let Some((offset, _)) = bytes.first() {
                let text = bytes.iter().map(|(_, byte)| *byte).filter(|byte| *byte != b'\n').collect::<Vec<u8>>();
                want.push((*offset, line.number, text));
            }
        }
        want.sort();
        prop_assert_eq!(lines_now(dir.path()), want);
        let stats = journal.stats().unwrap();
        for stream in StreamSet::ALL.iter() {
            let bytes: Vec<u8> = all.iter().filter(|op| op.stream == stream).flat_map(|op| op.bytes.clone()).collect();
            prop_assert_eq!(stats.for_stream(stream).bytes, bytes.len() as u64);
            prop_assert_eq!(stats.for_stream(stream).newlines, bytes.iter().filter(|&&byte| byte == b'\n').count() as u64);
        }
        let end = writer.end();
        prop_assert_eq!(journal.clear().unwrap().to, end);
        prop_assert_eq!(lines_now(dir.path()), []);
    }
}

/// The bytes of a line with their offsets, its newline included.
fn flat_of(ops: &[JournalOp], line: &JournalLine) -> Vec<(u64, u8)> {
    let mut offset = 0;
    let mut bytes = Vec::new();
    let mut left = line.bytes.len() + usize::from(line.terminated);
    for op in ops {
        for &byte in &op.bytes {
            if op.stream == line.stream && offset >= line.offset && left > 0 {
                bytes.push((offset, byte));
                left -= 1;
            }
            offset += 1;
        }
    }
    bytes
}

#[test]
fn clearing_removes_sealed_segments_and_punches_the_open_one() {
    let dir = tempfile::tempdir().unwrap();
    let ops = ten_segments();
    let journal = write(dir.path(), &ops, SEGMENT_BYTES);
    let (before, _) = retention::measure(dir.path()).unwrap();
    journal.clear().unwrap();
    let (after, _) = retention::measure(dir.path()).unwrap();
    assert!(
        before > 10 * SEGMENT_BYTES && after < SEGMENT_BYTES,
        "{before} {after}"
    );
    assert_eq!(
        pages(&journal).1,
        [Gap {
            from: 0,
            to: journal.end().unwrap()
        }]
    );
    assert!(!dir.path().join("output.0.idx").exists());
}
