//! Random queries, compared with a reference journal.

use std::io::Write;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::common::{JournalOp, at, chunks, lines, matches, ops, to_lines, write};
use ostler_journal::{
    ByteQuery, GrepMode, Journal, LineQuery, OpenLineMode, OutputWriter, Pattern, SegmentLimits,
    StreamSet,
};
use ostler_model::{Cursor, StreamName};
use proptest::prelude::*;

fn streams() -> impl Strategy<Value = StreamSet> {
    prop_oneof![
        Just(StreamSet::ALL),
        Just(StreamSet::OUTPUT),
        Just(StreamSet::only(StreamName::Stdout)),
        Just(StreamSet::only(StreamName::Stderr)),
    ]
}

/// Segment sizes: from a few chunks in each to all in one.
fn segments() -> impl Strategy<Value = u64> {
    prop_oneof![Just(16), 20u64..200, Just(u64::MAX)]
}

fn queries() -> impl Strategy<Value = LineQuery> {
    let place = (prop::option::of(0u64..200), prop::option::of(0u64..200));
    let time = (
        prop::option::of(999i64..1040),
        prop::option::of(999i64..1040),
    );
    let grep = prop::option::of(prop_oneof![
        Just("a"),
        Just("ab"),
        Just("^b"),
        Just("a$"),
        Just("b*"),
        Just(r"\Aa"),
        Just("[^b]"),
        Just("^$"),
        Just("bb|a\r"),
    ]);
    let mode = prop_oneof![Just(GrepMode::Line), Just(GrepMode::Content)];
    let counts = (prop::option::of(0u64..12), prop::option::of(0u64..12));
    let unfinished = prop_oneof![
        Just(OpenLineMode::Hide),
        Just(OpenLineMode::Preview),
        Just(OpenLineMode::Final)
    ];
    (place, time, streams(), grep, mode, counts, unfinished).prop_map(
        |(
            (from, until_cursor),
            (since, until),
            streams,
            grep,
            grep_mode,
            (head, tail),
            unfinished,
        )| {
            let cursor = |offset| Cursor { offset, event: 7 };
            LineQuery {
                from: from.map(cursor),
                until_cursor: until_cursor.map(cursor),
                since: since.map(at),
                until: until.map(at),
                streams,
                grep: grep.map(|grep| Pattern::new(grep).unwrap()),
                grep_mode,
                // Both together with several matches in a line are left to the unit tests.
                head: if tail.is_some() && grep_mode == GrepMode::Content {
                    None
                } else {
                    head
                },
                tail,
                unfinished,
                ..LineQuery::default()
            }
        },
    )
}

/// Sets the change time of a directory to the past: listings of one changed just now are not kept.
fn past(dir: &Path, stamp: u64) {
    let at = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000 + stamp);
    std::fs::File::open(dir).unwrap().set_modified(at).unwrap();
}

/// Leaves half of an append at the end of the newest segment.
fn tear(dir: &Path) {
    let newest = |suffix| {
        let ours = |path: &PathBuf| path.extension().is_some_and(|it| it == suffix);
        let number = |path: &PathBuf| -> u32 {
            let name = path.file_name().unwrap().to_str().unwrap();
            name.split('.').nth(1).unwrap().parse().unwrap()
        };
        let files = std::fs::read_dir(dir)
            .unwrap()
            .map(|one| one.unwrap().path());
        files.filter(ours).max_by_key(number).unwrap()
    };
    for (suffix, bytes) in [("seg", &b"torn"[..]), ("idx", &[7; 11])] {
        let file = std::fs::OpenOptions::new()
            .append(true)
            .open(newest(suffix));
        file.unwrap().write_all(bytes).unwrap();
    }
}

/// Reads until there is no more; every page within its budgets.
fn all_pages(journal: &Journal, query: &LineQuery) -> Vec<ostler_journal::JournalLine> {
    let mut query = query.clone();
    let mut all = Vec::new();
    for _ in 0..10_000 {
        let page = journal.lines(&query).unwrap();
        assert!(page.lines.len() as u64 <= query.max_lines.max(1) + 3);
        let given = page.lines.len() as u64;
        all.extend(page.lines);
        if !page.more {
            return all;
        }
        query.from = Some(page.next);
        query.head = query.head.map(|head| head - given);
        query.tail = query.tail.map(|tail| tail - given);
    }
    panic!("pages without end");
}

#[test]
fn open_lines_beyond_a_page_of_head_and_tail_are_counted() {
    let op = |stream, bytes: &[u8]| JournalOp {
        at_ns: 1_000,
        stream,
        bytes: bytes.to_vec(),
    };
    let ops = [
        op(StreamName::Stdout, b"open"),
        op(StreamName::Stdin, b"first\n\nopen"),
    ];
    let dir = tempfile::tempdir().unwrap();
    let journal = write(dir.path(), &ops, 1 << 20);
    // Of the first three lines, the last is open; the page has room for one of the last two.
    let query = LineQuery {
        streams: StreamSet::ALL,
        head: Some(3),
        tail: Some(2),
        unfinished: OpenLineMode::Preview,
        max_lines: 1,
        ..LineQuery::default()
    };
    let page = journal.lines(&query).unwrap();
    assert_eq!(
        (page.lines.len(), page.omitted_lines, page.more),
        (1, 1, true)
    );
    assert_eq!(
        (page.lines[0].number, page.lines[0].bytes.as_slice()),
        (2, &b""[..])
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn bytes_come_back(ops in ops(60), segment in segments(), streams in streams(), from in 0u64..300, budget in 1u64..40, joined in any::<bool>()) {
        let dir = tempfile::tempdir().unwrap();
        let journal = write(dir.path(), &ops, segment);
        let end: u64 = ops.iter().map(|op| op.bytes.len() as u64).sum();
        prop_assert_eq!(journal.end().unwrap(), end);
        let mut query = ByteQuery { from: Cursor { offset: from, event: 3 }, until: None, streams, max_bytes: budget, joined };
        let mut got: Vec<(u64, StreamName, u8, _)> = Vec::new();
        loop {
            let page = journal.read(&query).unwrap();
            prop_assert_eq!(page.gap, None);
            prop_assert_eq!(page.next.event, 3);
            let size: usize = page.chunks.iter().map(|chunk| chunk.bytes.len()).sum();
            prop_assert!(size as u64 <= budget);
            let follows = |pair: &[ostler_journal::query::Chunk]| pair[0].stream == pair[1].stream && pair[0].offset + pair[0].bytes.len() as u64 == pair[1].offset;
            prop_assert!(!joined || !page.chunks.windows(2).any(follows));
            for chunk in page.chunks {
                for (place, byte) in chunk.bytes.iter().enumerate() {
                    got.push((chunk.offset + place as u64, chunk.stream, *byte, chunk.at));
                }
            }
            query.from = page.next;
            if !page.more { break; }
        }
        let want = chunks(&ops, streams).into_iter().flat_map(|chunk| {
            chunk.bytes.clone().into_iter().enumerate().map(move |(place, byte)| (chunk.offset + place as u64, chunk.stream, byte, chunk.at))
        }).filter(|one| one.0 >= from).collect::<Vec<_>>();
        // Of joined bytes only the first have their time.
        let without_time = |bytes: Vec<(u64, StreamName, u8, _)>| bytes.into_iter().map(|(offset, stream, byte, _)| (offset, stream, byte)).collect::<Vec<_>>();
        if !joined { prop_assert_eq!(&got, &want); }
        prop_assert_eq!(without_time(got), without_time(want));
    }

    #[test]
    fn lines_are_as_the_model_says(ops in ops(60), segment in segments(), query in queries()) {
        let dir = tempfile::tempdir().unwrap();
        let journal = write(dir.path(), &ops, segment);
        let page = journal.lines(&query).unwrap();
        let want = matches(&ops, &query);
        prop_assert_eq!(&page.lines, &to_lines(&want));
        prop_assert!(!page.more);
        prop_assert_eq!(page.omitted_lines, 0);
        prop_assert_eq!(page.gap, None);
        prop_assert_eq!(page.next.event, query.from.map_or(0, |from| from.event));
    }

    #[test]
    fn budgets_cut_pages_and_nothing_else(ops in ops(60), segment in segments(), mut query in queries(), most in 1u64..5, bytes in 1u64..30) {
        let dir = tempfile::tempdir().unwrap();
        let journal = write(dir.path(), &ops, segment);
        query.max_lines = most;
        query.max_bytes = bytes;
        if query.grep_mode == GrepMode::Content && query.grep.is_some() {
            // The matches of a line stay on one page: those beyond its budgets are counted.
            let page = journal.lines(&query).unwrap();
            let want = matches(&ops, &query);
            prop_assert_eq!(page.lines.len() as u64 + page.omitted_lines, want.len() as u64);
            return Ok(());
        }
        let want = matches(&ops, &query);
        let first = journal.lines(&query).unwrap();
        prop_assert_eq!(first.lines.len() as u64 + first.omitted_lines, want.len() as u64, "{:?}", first);
        prop_assert_eq!(first.more, first.omitted_lines > 0);
        prop_assert_eq!(&first.lines, &to_lines(&want[..first.lines.len()]));
        let plain = LineQuery { count_omitted: false, ..query.clone() };
        prop_assert_eq!(journal.lines(&plain).unwrap().more, first.more);
        // With both, the position at which the head ends cannot be expressed as a query.
        let both = query.head.is_some() && query.tail.is_some();
        if query.unfinished != OpenLineMode::Preview && !both {
            let mut all = all_pages(&journal, &query);
            all.sort_by_key(|line| line.offset);
            prop_assert_eq!(all, to_lines(&want));
        }
    }

}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn a_poller_sees_each_line_once(ops in ops(40), segment in segments(), streams in streams(), most in 1u64..4, polls in 0usize..3) {
        let dir = tempfile::tempdir().unwrap();
        let handle = std::fs::File::open(dir.path()).unwrap();
        let mut writer = ostler_journal::OutputWriter::create(std::os::fd::AsFd::as_fd(&handle), ostler_journal::SegmentLimits { segment_bytes: segment }).unwrap();
        let journal = Journal::open(dir.path()).unwrap();
        let mut query = LineQuery { from: Some(Cursor::START), streams, max_lines: most, ..LineQuery::default() };
        let mut got = Vec::new();
        for op in &ops {
            writer.append(op.at_ns, op.stream, &op.bytes).unwrap();
            for _ in 0..polls {
                let page = journal.lines(&query).unwrap();
                query.from = Some(page.next);
                got.extend(page.lines);
            }
        }
        query.unfinished = OpenLineMode::Final;
        for _ in 0..ops.len() * 12 + 2 {
            let page = journal.lines(&query).unwrap();
            query.from = Some(page.next);
            got.extend(page.lines);
        }
        got.sort_by_key(|line| line.offset);
        let all = LineQuery { streams, unfinished: OpenLineMode::Final, ..LineQuery::default() };
        prop_assert_eq!(got, to_lines(&matches(&ops, &all)));
    }

    #[test]
    fn long_lines_are_clipped(ops in ops(40), segment in segments(), most in 0u64..6) {
        let dir = tempfile::tempdir().unwrap();
        let journal = write(dir.path(), &ops, segment);
        let query = LineQuery { max_line_bytes: most, streams: StreamSet::ALL, unfinished: OpenLineMode::Final, budget: Some(Duration::ZERO), ..LineQuery::default() };
        let page = journal.lines(&query).unwrap();
        let want: Vec<_> = to_lines(&lines(&ops)).into_iter().map(|mut line| {
            let len = line.bytes.len() as u64;
            line.bytes.truncate(usize::try_from(most).unwrap());
            line.clipped = len - line.bytes.len() as u64;
            line
        }).collect();
        prop_assert_eq!(page.lines, want);
    }

    #[test]
    fn long_lines_have_their_length_from_every_offset(ops in ops(40), segment in segments(), most in 0u64..6, from in 0u64..200) {
        let dir = tempfile::tempdir().unwrap();
        let journal = write(dir.path(), &ops, segment);
        let from = Some(Cursor { offset: from, event: 0 });
        let all = LineQuery { from, streams: StreamSet::ALL, unfinished: OpenLineMode::Final, ..LineQuery::default() };
        let clipped = LineQuery { max_line_bytes: most, ..all.clone() };
        let (all, clipped) = (journal.lines(&all).unwrap().lines, journal.lines(&clipped).unwrap().lines);
        let whole = |line: &ostler_journal::JournalLine| (line.at, line.offset, line.number, line.bytes.len() as u64 + line.clipped);
        prop_assert_eq!(all.iter().map(whole).collect::<Vec<_>>(), clipped.iter().map(whole).collect::<Vec<_>>());
        prop_assert!(clipped.iter().all(|line| line.bytes.len() as u64 <= most));
    }

    #[test]
    fn files_kept_open_change_no_answer(ops in ops(60), segment in segments(), looks in prop::collection::vec((0usize..4, 0u64..200), 60)) {
        let dir = tempfile::tempdir().unwrap();
        let handle = std::fs::File::open(dir.path()).unwrap();
        let limits = SegmentLimits { segment_bytes: segment };
        let mut writer = OutputWriter::create(handle.as_fd(), limits).unwrap();
        let fresh = Journal::open(dir.path()).unwrap();
        let kept = Journal::open(dir.path()).unwrap().with_open_files();
        let files = || std::fs::read_dir(dir.path()).unwrap().count();
        let (mut stamp, mut known) = (0, 0);
        for (op, (what, from)) in ops.iter().zip(&looks) {
            writer.append(op.at_ns, op.stream, &op.bytes).unwrap();
            match what {
                // No read now: the next one finds more.
                0 => continue,
                1 if from % 8 == 0 => drop(fresh.clear().unwrap()),
                2 if from % 8 == 0 => {
                    // A torn append, as a killed shim leaves it, and a later attempt.
                    tear(dir.path());
                    drop(writer);
                    writer = OutputWriter::resume(handle.as_fd(), limits).unwrap();
                }
                _ => {}
            }
            // The kernel would change the time with the directory.
            stamp += u64::from(*from % 8 == 0 || known != files());
            known = files();
            past(dir.path(), stamp);
            let query = ByteQuery::starting_at(Cursor { offset: *from, event: 0 });
            for _ in 0..2 {
                prop_assert_eq!(kept.extent().unwrap(), fresh.extent().unwrap());
                prop_assert_eq!(kept.read(&query).unwrap(), fresh.read(&query).unwrap());
                let all = LineQuery { streams: StreamSet::ALL, unfinished: OpenLineMode::Preview, ..LineQuery::default() };
                prop_assert_eq!(kept.lines(&all).unwrap(), fresh.lines(&all).unwrap());
            }
        }
    }

    #[test]
    fn stats_count(ops in ops(60), segment in segments()) {
        let dir = tempfile::tempdir().unwrap();
        let stats = write(dir.path(), &ops, segment).stats().unwrap();
        for stream in StreamSet::ALL.iter() {
            let bytes: Vec<u8> = ops.iter().filter(|op| op.stream == stream).flat_map(|op| op.bytes.clone()).collect();
            let share = stats.for_stream(stream);
            prop_assert_eq!(share.bytes, bytes.len() as u64);
            prop_assert_eq!(share.newlines, bytes.iter().filter(|&&byte| byte == b'\n').count() as u64);
            prop_assert_eq!(share.open_line, bytes.last().is_some_and(|&last| last != b'\n'));
        }
        prop_assert_eq!(stats.kept_bytes, stats.end);
        prop_assert_eq!(stats.last_at, ops.last().map(|op: &JournalOp| at(op.at_ns)));
    }
}
