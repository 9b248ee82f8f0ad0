//! A reader concurrent with a writer that rotates, and with retention that removes segments.

use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};

use ostler_journal::retention::{self, OutputPolicy};
use ostler_journal::{ByteQuery, Journal, LineQuery, OpenLineMode, OutputWriter, SegmentLimits};
use ostler_model::{Cursor, StreamName};

const LINES: u64 = 20_000;

fn write_lines(dir: &std::path::Path, done: &AtomicBool) {
    let handle = std::fs::File::open(dir).unwrap();
    let limits = SegmentLimits {
        segment_bytes: 16 * 1024,
    };
    let mut writer = OutputWriter::create(handle.as_fd(), limits).unwrap();
    for number in 0..LINES {
        let stream = if number % 5 == 0 {
            StreamName::Stderr
        } else {
            StreamName::Stdout
        };
        let line = format!("line {number}\n");
        let (one, two) = line.as_bytes().split_at(line.len() / 2);
        writer.append(0, stream, one).unwrap();
        writer.append(0, stream, two).unwrap();
    }
    done.store(true, Ordering::Release);
}

/// The numbers of the lines that a poller reads, in the order in which they came.
fn poll_lines(dir: &std::path::Path, done: &AtomicBool) -> Vec<u64> {
    let journal = Journal::open(dir).unwrap();
    let mut query = LineQuery {
        from: Some(Cursor::START),
        max_lines: 300,
        count_omitted: false,
        ..LineQuery::default()
    };
    let mut got = Vec::new();
    loop {
        let finished = done.load(Ordering::Acquire);
        query.unfinished = if finished {
            OpenLineMode::Final
        } else {
            OpenLineMode::Hide
        };
        let page = journal.lines(&query).unwrap();
        assert_eq!(page.damaged, None);
        query.from = Some(page.next);
        got.extend(page.lines.iter().map(|line| {
            let text = std::str::from_utf8(&line.bytes).unwrap();
            text.strip_prefix("line ").unwrap().parse::<u64>().unwrap()
        }));
        if finished && !page.more {
            return got;
        }
    }
}

#[test]
fn a_poller_beside_a_writer_misses_and_doubles_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let poller = scope.spawn(|| poll_lines(dir.path(), &done));
        write_lines(dir.path(), &done);
        let mut got = poller.join().unwrap();
        got.sort_unstable();
        assert!(got == (0..LINES).collect::<Vec<_>>());
    });
}

#[test]
fn a_reader_beside_retention_sees_bytes_or_gaps() {
    let dir = tempfile::tempdir().unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let journal = Journal::open(dir.path()).unwrap();
            let mut query = ByteQuery {
                max_bytes: 5_000,
                ..ByteQuery::starting_at(Cursor::START)
            };
            let (mut at, mut skipped) = (0, 0);
            loop {
                let finished = done.load(Ordering::Acquire);
                let page = journal.read(&query).unwrap();
                assert_eq!(page.damaged, None);
                if let Some(gap) = page.gap {
                    assert_eq!(gap.from, at);
                    skipped += gap.to - gap.from;
                    at = gap.to;
                }
                for chunk in &page.chunks {
                    assert_eq!(chunk.offset, at);
                    at += chunk.bytes.len() as u64;
                }
                assert_eq!(page.next.offset, at);
                query.from = page.next;
                if finished && !page.more {
                    return (at, skipped);
                }
            }
        });
        let trimmer = scope.spawn(|| {
            let policy = OutputPolicy {
                head_bytes: 20_000,
                tail_bytes: 40_000,
            };
            let mut trimmed = 0;
            while !done.load(Ordering::Acquire) {
                let range = retention::trim(dir.path(), policy).unwrap();
                trimmed += range.map_or(0, |range| range.to - range.from);
            }
            trimmed
        });
        write_lines(dir.path(), &done);
        let (end, skipped) = reader.join().unwrap();
        assert_eq!(end, Journal::open(dir.path()).unwrap().end().unwrap());
        assert!(skipped <= trimmer.join().unwrap());
    });
}
