//! Lines by number, searches and shapes, against the reference journal.

use std::os::fd::AsFd;

use ostler_journal::{
    Journal, LinePosition, LineSearch, NumberedLine, NumberedQuery, OutputWriter, Pattern,
    SearchedLines, SegmentLimits, StreamSet,
};
use ostler_model::StreamName;
use proptest::prelude::*;

use crate::common::{JournalOp, at, lines, ops, write};

/// The lines of all output streams with their numbers, and how many have ended.
fn numbered(ops: &[JournalOp]) -> (Vec<NumberedLine>, u64) {
    let output = lines(ops)
        .into_iter()
        .map(|one| one.line)
        .filter(|line| StreamSet::OUTPUT.contains(line.stream));
    let numbered: Vec<NumberedLine> = output
        .zip(1..)
        .map(|(line, number)| NumberedLine { number, line })
        .collect();
    let ended = numbered.iter().filter(|one| one.line.terminated).count();
    (numbered, ended as u64)
}

/// All lines from `first` on, page by page.
fn read_all(journal: &Journal, first: u64, query: &NumberedQuery) -> Vec<NumberedLine> {
    let mut found = Vec::new();
    let mut next = LinePosition::Number(first);
    loop {
        let page = journal
            .numbered_lines(&NumberedQuery {
                from: next,
                ..query.clone()
            })
            .unwrap();
        assert!(page.lines.len() as u64 <= query.max_lines + 2);
        found.extend(page.lines);
        if !page.more {
            return found;
        }
        next = LinePosition::Number(page.next);
    }
}

/// All matches from `from` on, piece by piece.
fn search_all(journal: &Journal, search: &LineSearch) -> (Vec<NumberedLine>, u64) {
    let (mut found, mut count) = (Vec::new(), 0);
    let mut search = search.clone();
    loop {
        let page = journal.search_lines(&search).unwrap();
        let is_backward = matches!(search.lines, SearchedLines::Last(_));
        count += page.count;
        if is_backward {
            found.splice(0..0, page.matches);
        } else {
            found.extend(page.matches);
        }
        match page.next {
            Some(next) => search.from = next,
            None => return (found, count),
        }
    }
}

fn segments() -> impl Strategy<Value = u64> {
    prop_oneof![Just(1u64), Just(1 << 20)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(80))]

    #[test]
    fn pages_are_the_lines_in_the_order_of_their_ends(
        ops in ops(60), segment in segments(), first in 1u64..30, max_lines in 1u64..7, max_bytes in 1u64..20, only_stderr: bool,
    ) {
        let dir = tempfile::tempdir().unwrap();
        let journal = write(dir.path(), &ops, segment);
        let (all, ended) = numbered(&ops);
        let streams = if only_stderr { StreamSet::only(StreamName::Stderr) } else { StreamSet::OUTPUT };
        let query = NumberedQuery { streams, max_lines, max_bytes, ..NumberedQuery::starting_at(LinePosition::Number(1)) };
        let first = first.min(ended + 1);
        let want: Vec<NumberedLine> = all.into_iter().filter(|one| one.number >= first && streams.contains(one.line.stream)).collect();
        let found = read_all(&journal, first, &query);
        prop_assert_eq!(found, want);
    }

    #[test]
    fn numbers_stay_when_output_is_dropped(ops in ops(60), segment in segments(), kept in 0usize..60) {
        let dir = tempfile::tempdir().unwrap();
        let handle = std::fs::File::open(dir.path()).unwrap();
        let mut writer = OutputWriter::create(handle.as_fd(), SegmentLimits { segment_bytes: segment }).unwrap();
        let journal = Journal::open(dir.path()).unwrap();
        let kept = kept.min(ops.len());
        for (place, op) in ops.iter().enumerate() {
            if place == kept && place > 0 {
                journal.clear().unwrap();
            }
            writer.append(op.at_ns, op.stream, &op.bytes).unwrap();
        }
        let page = journal.numbered_lines(&NumberedQuery::starting_at(LinePosition::Number(1))).unwrap();
        let (all, ended) = numbered(&ops);
        let (_, dropped) = if kept < ops.len() && kept > 0 { numbered(&ops[..kept]) } else { (Vec::new(), 0) };
        prop_assert_eq!((page.first_kept, page.ended), (dropped + 1, ended));
        let numbers: Vec<u64> = page.lines.iter().filter(|one| one.line.terminated).map(|one| one.number).collect();
        prop_assert_eq!(numbers, (dropped + 1..=ended).collect::<Vec<u64>>());
        for one in page.lines.iter().filter(|one| one.line.terminated) {
            let want = all.iter().find(|line| line.number == one.number).unwrap();
            prop_assert!(want.line.bytes.ends_with(&one.line.bytes));
        }
    }

    #[test]
    fn positions_by_time_and_from_the_end(ops in ops(60), segment in segments(), place in 0usize..60, last in 0u64..9) {
        let dir = tempfile::tempdir().unwrap();
        let journal = write(dir.path(), &ops, segment);
        let (_, ended) = numbered(&ops);
        let first = |from| {
            let query = NumberedQuery::starting_at(from);
            let page = journal.numbered_lines(&query).unwrap();
            page.lines.first().map_or(page.next, |one| one.number)
        };
        prop_assert_eq!(first(LinePosition::Last(last)), (ended + 1).saturating_sub(last).max(1));
        if let Some(op) = ops.get(place) {
            let before = ops.iter().take_while(|one| one.at_ns < op.at_ns).count();
            let (_, before) = numbered(&ops[..before]);
            prop_assert_eq!(first(LinePosition::Time(at(op.at_ns))), before + 1);
        }
    }

    #[test]
    fn searches_find_what_a_scan_finds(ops in ops(60), segment in segments(), limit in 1u64..5, max_bytes in 1u64..50, from in 1u64..30) {
        let dir = tempfile::tempdir().unwrap();
        let journal = write(dir.path(), &ops, segment);
        let (all, ended) = numbered(&ops);
        let from = from.min(ended + 1);
        let has_match = |one: &&NumberedLine| one.line.bytes.windows(2).any(|two| two == b"ab");
        let mut search = LineSearch {
            pattern: Pattern::new("ab").unwrap(),
            from,
            lines: SearchedLines::First(limit),
            streams: StreamSet::OUTPUT,
            max_bytes,
            max_line_bytes: 1_000,
        };
        let want: Vec<NumberedLine> = all.iter().filter(has_match).filter(|one| one.number >= from).cloned().collect();
        let (found, count) = search_all(&journal, &search);
        prop_assert_eq!(&found, &want);
        prop_assert_eq!(count, want.len() as u64);
        search.lines = SearchedLines::Count;
        prop_assert_eq!(search_all(&journal, &search), (Vec::new(), want.len() as u64));
        search.lines = SearchedLines::Last(limit);
        let is_before = |one: &&NumberedLine| one.number <= from || from > ended;
        let want: Vec<NumberedLine> = all.iter().filter(has_match).filter(is_before).cloned().collect();
        prop_assert_eq!(search_all(&journal, &search), (want.clone(), want.len() as u64));
    }

    #[test]
    fn a_shape_counts_each_line_where_it_ended(ops in ops(60), segment in segments(), buckets in 1usize..6) {
        let dir = tempfile::tempdir().unwrap();
        let journal = write(dir.path(), &ops, segment);
        let shape = journal.shape(buckets).unwrap();
        let (_, ended) = numbered(&ops);
        prop_assert_eq!(shape.ended, ended);
        let mut want = vec![(0, 0); buckets];
        if let (Some(first), Some(last)) = (ops.first(), ops.last()) {
            prop_assert_eq!(shape.times, Some((at(first.at_ns), at(last.at_ns))));
            for op in ops.iter().filter(|op| StreamSet::OUTPUT.contains(op.stream)) {
                let place = (op.at_ns - first.at_ns) * buckets as i64 / (last.at_ns - first.at_ns + 1);
                let newlines = op.bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
                let bucket = &mut want[usize::try_from(place).unwrap()];
                bucket.0 += newlines;
                bucket.1 += if op.stream == StreamName::Stderr { newlines } else { 0 };
            }
            let found: Vec<(u64, u64)> = shape.buckets.iter().map(|one| (one.lines, one.stderr_lines)).collect();
            prop_assert_eq!(found, want);
        } else {
            prop_assert!(shape.buckets.is_empty());
        }
    }
}

#[test]
fn a_line_that_lost_its_middle_is_returned_in_its_parts() {
    let dir = tempfile::tempdir().unwrap();
    let handle = std::fs::File::open(dir.path()).unwrap();
    let limits = SegmentLimits { segment_bytes: 1 };
    let mut writer = OutputWriter::create(handle.as_fd(), limits).unwrap();
    let pieces = [
        &b"one\nthe beginning of two"[..],
        b"two's end\nbegun: ",
        b"the end of three\nfour\n",
    ];
    for bytes in pieces {
        writer.append(1, StreamName::Stdout, bytes).unwrap();
    }
    let is_second = |path: &std::path::Path| {
        let name = path.file_stem().unwrap().to_string_lossy();
        name.ends_with('1')
    };
    let files = std::fs::read_dir(dir.path()).unwrap();
    let files = files.map(|entry| entry.unwrap().path());
    for path in files.filter(|path| is_second(path)) {
        std::fs::remove_file(path).unwrap();
    }
    let journal = Journal::open(dir.path()).unwrap();
    for max_lines in [1, 2, 10] {
        let query = NumberedQuery {
            max_lines,
            ..NumberedQuery::starting_at(LinePosition::Number(1))
        };
        let mut found = Vec::new();
        let mut from = 1;
        loop {
            let page = journal
                .numbered_lines(&NumberedQuery {
                    from: LinePosition::Number(from),
                    ..query.clone()
                })
                .unwrap();
            found.extend(
                page.lines
                    .into_iter()
                    .map(|one| (one.number, one.line.bytes, one.line.terminated)),
            );
            from = page.next;
            if !page.more {
                break;
            }
        }
        let want = [
            (1, b"one".to_vec(), true),
            (2, b"the beginning of two".to_vec(), false),
            (3, b"the end of three".to_vec(), true),
            (4, b"four".to_vec(), true),
        ];
        assert_eq!(found, want, "pages of {max_lines}");
    }
}
