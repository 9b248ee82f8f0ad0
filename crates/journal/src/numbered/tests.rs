//! Counts that are unknown: no query may panic, and none may go on for ever.

use std::fs::File;
use std::os::fd::AsFd;

use ostler_model::StreamName;

use super::{LinePosition, LineSearch, NumberedQuery, SearchedLines};
use crate::memory_ring::MemorySegment;
use crate::query::StreamSet;
use crate::writer::{OutputWriter, SegmentLimits};
use crate::{Journal, Pattern};

/// An attempt on a full disk begins in memory, where the counts of earlier ones are unknown; what
/// these printed was cleared.
#[test]
fn output_that_begins_anew_in_memory_is_read_by_number() {
    let dir = tempfile::tempdir().unwrap();
    let handle = File::open(dir.path()).unwrap();
    let mut writer = OutputWriter::create(handle.as_fd(), SegmentLimits::default()).unwrap();
    writer
        .append(1, StreamName::Stdout, b"one\ntwo\nthree\n")
        .unwrap();
    let journal = Journal::open(dir.path()).unwrap();
    let cleared = journal.clear().unwrap();
    let mut memory = MemorySegment::at(cleared.to).unwrap();
    memory.append(2, StreamName::Stdout, b"again\n").unwrap();
    let journal = journal.with_memory(memory.as_fd().try_clone_to_owned().unwrap());
    for from in [
        LinePosition::Number(1),
        LinePosition::Number(100),
        LinePosition::Offset(0),
        LinePosition::Last(5),
    ] {
        let page = journal
            .numbered_lines(&NumberedQuery::starting_at(from))
            .unwrap();
        assert!(page.ended + 1 >= page.first_kept, "{page:?}");
        assert!(!page.more && page.next > page.ended, "{page:?}");
    }
    for lines in [
        SearchedLines::First(1),
        SearchedLines::Last(1),
        SearchedLines::Count,
    ] {
        let search = LineSearch {
            pattern: Pattern::new("again").unwrap(),
            from: 1,
            lines,
            streams: StreamSet::OUTPUT,
            max_bytes: 1_000,
            max_line_bytes: 100,
        };
        assert_eq!(journal.search_lines(&search).unwrap().next, None);
    }
    journal.shape(3).unwrap();
}
