//! Torn, damaged and truncated files: data acknowledged before the damage stays readable, and
//! nothing panics.

use std::collections::BTreeSet;
use std::os::fd::AsFd;
use std::path::Path;

use crate::common::{JournalOp, chunks, matches, ops, to_lines, write};
use ostler_journal::{
    ByteQuery, Chunk, Gap, Journal, LinePosition, LineQuery, LineSearch, MemorySegment,
    NumberedQuery, OpenLineMode, OutputWriter, SearchedLines, SegmentLimits, StreamSet,
};
use ostler_model::{Cursor, StreamName};
use proptest::prelude::*;

/// Everything that can be read, chunk by chunk.
pub(crate) fn read_all(journal: &Journal) -> Vec<Chunk> {
    let mut query = ByteQuery {
        streams: StreamSet::ALL,
        ..ByteQuery::starting_at(Cursor::START)
    };
    let mut all = Vec::new();
    for _ in 0..1_000 {
        let page = journal.read(&query).unwrap();
        all.extend(page.chunks);
        query.from = page.next;
        if !page.more {
            return all;
        }
    }
    panic!("pages without end");
}

/// Pages and searches by line number: none may panic, and none may go on for ever.
fn ask_by_number(journal: &Journal) {
    const STEPS: usize = 1_000;
    let mut next = Some(1);
    let pages = std::iter::from_fn(|| {
        let page = journal
            .numbered_lines(&NumberedQuery {
                max_lines: 2,
                ..NumberedQuery::starting_at(LinePosition::Number(next?))
            })
            .unwrap();
        next = page.more.then_some(page.next);
        Some(())
    });
    assert!(pages.take(STEPS).count() < STEPS, "pages without end");
    for lines in [
        SearchedLines::First(1),
        SearchedLines::Last(1),
        SearchedLines::Count,
    ] {
        let is_backward = lines == SearchedLines::Last(1);
        let mut next = Some(if is_backward { u64::MAX } else { 1 });
        let searches = std::iter::from_fn(|| {
            let search = LineSearch {
                pattern: ostler_journal::Pattern::new("a").unwrap(),
                from: next?,
                lines,
                streams: StreamSet::OUTPUT,
                max_bytes: 7,
                max_line_bytes: 5,
            };
            next = journal.search_lines(&search).unwrap().next;
            Some(())
        });
        assert!(searches.take(STEPS).count() < STEPS, "searches without end");
    }
    journal.shape(3).unwrap();
}

/// Runs every kind of query; none may panic.
pub(crate) fn ask_everything(journal: &Journal) {
    ask_by_number(journal);
    let all = LineQuery {
        streams: StreamSet::ALL,
        unfinished: OpenLineMode::Final,
        ..LineQuery::default()
    };
    let grep = Some(ostler_journal::Pattern::new("a").unwrap());
    for query in [
        all.clone(),
        LineQuery {
            tail: Some(3),
            ..all.clone()
        },
        LineQuery {
            tail: Some(3),
            grep: grep.clone(),
            ..all.clone()
        },
        LineQuery {
            head: Some(3),
            since: Some(crate::common::at(1_005)),
            until: Some(crate::common::at(1_010)),
            ..all.clone()
        },
        LineQuery {
            from: Some(Cursor {
                offset: 9,
                event: 0,
            }),
            max_lines: 1,
            grep,
            ..all
        },
    ] {
        journal.lines(&query).unwrap();
    }
    journal.end().unwrap();
    journal.start().unwrap();
    journal.stats().unwrap();
}

fn bytes_of(ops: &[JournalOp]) -> u64 {
    ops.iter().map(|op| op.bytes.len() as u64).sum()
}

/// Appends everything again after the existing data, and reads it back.
fn writes_on(dir: &Path, kept: &[JournalOp], more: &[JournalOp]) -> Result<(), TestCaseError> {
    let handle = std::fs::File::open(dir).unwrap();
    let mut writer = OutputWriter::resume(handle.as_fd(), SegmentLimits::default()).unwrap();
    prop_assert_eq!(writer.end(), bytes_of(kept));
    for op in more {
        writer.append(op.at_ns, op.stream, &op.bytes).unwrap();
    }
    let all: Vec<JournalOp> = kept.iter().chain(more).cloned().collect();
    let journal = Journal::open(dir).unwrap();
    let query = LineQuery {
        streams: StreamSet::ALL,
        unfinished: OpenLineMode::Final,
        ..LineQuery::default()
    };
    let got = journal.lines(&query).unwrap().lines;
    // Times never go backward on disk.
    let got: Vec<_> = got
        .into_iter()
        .map(|line| (line.offset, line.stream, line.number, line.bytes))
        .collect();
    let want: Vec<_> = to_lines(&matches(&all, &query))
        .into_iter()
        .map(|line| (line.offset, line.stream, line.number, line.bytes))
        .collect();
    prop_assert_eq!(got, want);
    Ok(())
}

/// The lengths of the header and of a record of an index, in bytes.
const INDEX_HEADER: usize = 96;
const INDEX_RECORD: usize = 32;

/// Where the chunk of one operation is on disk.
struct ChunkPlace {
    segment: usize,
    /// The number of its record in the index.
    record: usize,
    /// The offset of its first byte in the file.
    offset: usize,
}

/// The places of all chunks, by what the indexes say.
fn records_on_disk(dir: &Path) -> Vec<ChunkPlace> {
    let mut places = Vec::new();
    for segment in 0.. {
        let Ok(index) = std::fs::read(dir.join(format!("output.{segment}.idx"))) else {
            return places;
        };
        let mut offset = 0;
        for (record, raw) in index[INDEX_HEADER..].chunks(INDEX_RECORD).enumerate() {
            places.push(ChunkPlace {
                segment,
                record,
                offset,
            });
            offset += u32::from_le_bytes(raw[16..20].try_into().unwrap()) as usize;
        }
    }
    places
}

/// A journal of one chunk for each operation, some of which are damaged.
struct Damage<'o> {
    /// As far as there is an intact chunk.
    ops: &'o [JournalOp],
    harmed: BTreeSet<usize>,
}

impl<'o> Damage<'o> {
    fn new(ops: &'o [JournalOp], harmed: BTreeSet<usize>) -> Self {
        let end = (0..ops.len()).rfind(|index| !harmed.contains(index));
        let ops = &ops[..end.map_or(0, |last| last + 1)];
        Self { ops, harmed }
    }

    /// The offset at which each chunk begins, and the end.
    fn offsets(&self) -> Vec<u64> {
        (0..=self.ops.len())
            .map(|count| bytes_of(&self.ops[..count]))
            .collect()
    }

    /// Checks that exactly the intact chunks are read, from every offset, and all whole lines in
    /// them.
    fn check(&self, journal: &Journal) -> Result<(), TestCaseError> {
        let intact = |at: usize| !self.harmed.contains(&at);
        let all = chunks(self.ops, StreamSet::ALL).into_iter().enumerate();
        let readable: Vec<Chunk> = all
            .filter(|(at, _)| intact(*at))
            .map(|(_, chunk)| chunk)
            .collect();
        prop_assert_eq!(read_all(journal), readable);
        prop_assert_eq!(journal.end().unwrap(), bytes_of(self.ops));
        let offsets = self.offsets();
        let missing: u64 = self
            .harmed
            .iter()
            .filter_map(|&at| Some(self.ops.get(at)?.bytes.len() as u64))
            .sum();
        for (at, &from) in offsets.iter().enumerate() {
            let mut query = ByteQuery {
                streams: StreamSet::ALL,
                ..ByteQuery::starting_at(Cursor {
                    offset: from,
                    event: 0,
                })
            };
            let (mut read, mut gaps) = (0, 0);
            loop {
                let page = journal.read(&query).unwrap();
                prop_assert_eq!(page.damaged, None);
                read += page
                    .chunks
                    .iter()
                    .map(|chunk| chunk.bytes.len() as u64)
                    .sum::<u64>();
                gaps += page.gap.map_or(0, |gap| gap.to - gap.from);
                query.from = page.next;
                if !page.more {
                    break;
                }
            }
            prop_assert_eq!(read + gaps, offsets[self.ops.len()] - from);
            if at == 0 {
                prop_assert_eq!(gaps, missing);
            }
        }
        self.check_lines(journal)?;
        ask_everything(journal);
        Ok(())
    }

    fn check_lines(&self, journal: &Journal) -> Result<(), TestCaseError> {
        let mut query = LineQuery {
            streams: StreamSet::ALL,
            max_lines: 3,
            unfinished: OpenLineMode::Final,
            ..LineQuery::default()
        };
        let mut read = Vec::new();
        loop {
            let page = journal.lines(&query).unwrap();
            prop_assert_eq!(page.damaged, None);
            read.extend(page.lines);
            query.from = Some(page.next);
            if !page.more {
                break;
            }
        }
        for line in self.intact_lines() {
            let found = read
                .iter()
                .filter(|one| (one.stream, one.number, &one.bytes) == (line.0, line.1, &line.2));
            prop_assert_eq!(found.count(), 1, "{:?} in {:?}", line, read);
        }
        let tail = LineQuery {
            tail: Some(2),
            from: None,
            max_lines: 100,
            ..query
        };
        let last = journal.lines(&tail).unwrap().lines;
        for line in &last {
            prop_assert!(read.contains(line), "{:?} in {:?}", line, read);
        }
        Ok(())
    }

    /// Stream, number and bytes of the ended lines that no damaged chunk cuts. One of another stream
    /// does, too: what was in it is not known.
    fn intact_lines(&self) -> Vec<(StreamName, u64, Vec<u8>)> {
        let mut lines = Vec::new();
        for stream in [
            StreamName::Stdout,
            StreamName::Stderr,
            StreamName::Pty,
            StreamName::Stdin,
        ] {
            let ops = self
                .ops
                .iter()
                .enumerate()
                .filter(|(_, op)| op.stream == stream);
            let bytes = ops.flat_map(|(at, op)| op.bytes.iter().map(move |byte| (at, *byte)));
            let (mut line, mut number, mut first) = (Vec::new(), 1, None);
            for (at, byte) in bytes {
                let begin = *first.get_or_insert(at);
                if byte != b'\n' {
                    line.push(byte);
                    continue;
                }
                let ended = std::mem::take(&mut line);
                if self.harmed.range(begin..=at).next().is_none() {
                    lines.push((stream, number, ended));
                }
                (number, first) = (number + 1, None);
            }
        }
        lines
    }

    /// Checks that a later attempt continues at the end of the last intact chunk, and loses none.
    fn check_resume(&self, dir: &Path, more: &[JournalOp]) -> Result<(), TestCaseError> {
        let handle = std::fs::File::open(dir).unwrap();
        let mut writer = OutputWriter::resume(handle.as_fd(), SegmentLimits::default()).unwrap();
        prop_assert_eq!(writer.end(), bytes_of(self.ops));
        for op in more {
            writer.append(op.at_ns, op.stream, &op.bytes).unwrap();
        }
        let all: Vec<JournalOp> = self.ops.iter().chain(more).cloned().collect();
        let read: Vec<_> = read_all(&Journal::open(dir).unwrap())
            .into_iter()
            .map(|chunk| (chunk.offset, chunk.stream, chunk.bytes))
            .collect();
        let written = chunks(&all, StreamSet::ALL).into_iter().enumerate();
        let want: Vec<_> = written
            .filter(|(at, _)| *at >= self.ops.len() || !self.harmed.contains(at))
            .map(|(_, chunk)| (chunk.offset, chunk.stream, chunk.bytes))
            .collect();
        prop_assert_eq!(read, want);
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_crash_at_any_byte_keeps_the_acknowledged_prefix(ops in ops(20), more in ops(6), cut: prop::sample::Index, in_index: bool) {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), &ops, u64::MAX);
        if ops.is_empty() { return Ok(()); }
        let name = if in_index { "output.0.idx" } else { "output.0.seg" };
        let path = dir.path().join(name);
        let text = std::fs::read(&path).unwrap();
        let cut = cut.index(text.len() + 1);
        std::fs::write(&path, &text[..cut]).unwrap();
        // The state after a crash: records whose chunk is whole, in order.
        let mut end = 0;
        let kept = ops.iter().enumerate().take_while(|(place, op)| {
            end += op.bytes.len();
            if in_index { 96 + 32 * (place + 1) <= cut } else { end <= cut }
        }).count();
        let journal = Journal::open(dir.path()).unwrap();
        prop_assert_eq!(read_all(&journal), chunks(&ops[..kept], StreamSet::ALL));
        prop_assert_eq!(journal.end().unwrap(), bytes_of(&ops[..kept]));
        ask_everything(&journal);
        writes_on(dir.path(), &ops[..kept], &more)?;
    }

    #[test]
    fn garbage_is_no_journal(index in prop::collection::vec(any::<u8>(), 0..400), segment in prop::collection::vec(any::<u8>(), 0..100), floor in prop::collection::vec(any::<u8>(), 0..120), keep_header: bool) {
        let dir = tempfile::tempdir().unwrap();
        let mut text = Vec::new();
        if keep_header {
            let other = tempfile::tempdir().unwrap();
            write(other.path(), &[JournalOp { at_ns: 1, stream: StreamName::Stdout, bytes: b"x".to_vec() }], 0);
            text = std::fs::read(other.path().join("output.0.idx")).unwrap()[..96].to_vec();
        }
        text.extend(index);
        std::fs::write(dir.path().join("output.0.idx"), text).unwrap();
        std::fs::write(dir.path().join("output.0.seg"), segment).unwrap();
        std::fs::write(dir.path().join("output.floor"), floor).unwrap();
        let journal = Journal::open(dir.path()).unwrap();
        if !keep_header && journal.end().is_err() { return Ok(()); }
        ask_everything(&journal);
        prop_assert_eq!(read_all(&journal), []);
    }

}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn a_flipped_bit_hides_one_chunk(ops in ops(20), more in ops(4), place: prop::sample::Index, bit in 0u8..8, in_index: bool) {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), &ops, u64::MAX);
        if ops.is_empty() { return Ok(()); }
        let name = if in_index { "output.0.idx" } else { "output.0.seg" };
        let path = dir.path().join(name);
        let mut text = std::fs::read(&path).unwrap();
        let place = place.index(text.len());
        if name.ends_with("idx") && place == 7 { return Ok(()); } // another version is an error
        text[place] ^= 1 << bit;
        std::fs::write(&path, &text).unwrap();
        let journal = Journal::open(dir.path()).unwrap();
        if in_index && place < INDEX_HEADER {
            prop_assert_eq!(read_all(&journal), []);
            ask_everything(&journal);
            return writes_on(dir.path(), &[], &more);
        }
        let mut end = 0;
        let harmed = if in_index { (place - INDEX_HEADER) / INDEX_RECORD } else {
            ops.iter().take_while(|op| { end += op.bytes.len(); end <= place }).count()
        };
        let damage = Damage::new(&ops, [harmed].into());
        damage.check(&journal)?;
        damage.check_resume(dir.path(), &more)?;
    }

    #[test]
    fn what_is_intact_is_read_wherever_the_damage_is(ops in ops(40), more in ops(4), harms in prop::collection::vec((any::<prop::sample::Index>(), any::<bool>(), 0usize..INDEX_RECORD, 1u8..), 1..8), segment_bytes in prop_oneof![Just(u64::MAX), 1u64..60]) {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), &ops, segment_bytes);
        if ops.is_empty() { return Ok(()); }
        let places = records_on_disk(dir.path());
        prop_assert_eq!(places.len(), ops.len());
        let mut harmed = BTreeSet::new();
        for (index, in_index, at, change) in harms {
            let index = index.index(ops.len());
            if !harmed.insert(index) { continue; }
            let place = &places[index];
            let (name, at) = match in_index {
                true => (format!("output.{}.idx", place.segment), INDEX_HEADER + place.record * INDEX_RECORD + at),
                false => (format!("output.{}.seg", place.segment), place.offset + at % ops[index].bytes.len()),
            };
            let path = dir.path().join(name);
            let mut text = std::fs::read(&path).unwrap();
            text[at] ^= change;
            std::fs::write(&path, &text).unwrap();
        }
        let damage = Damage::new(&ops, harmed);
        damage.check(&Journal::open(dir.path()).unwrap())?;
        damage.check_resume(dir.path(), &more)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20))]

    #[test]
    fn memory_goes_on_where_the_disk_ended(before in ops(10), after in ops(40), big in 0usize..40) {
        let dir = tempfile::tempdir().unwrap();
        let handle = std::fs::File::open(dir.path()).unwrap();
        let mut writer = OutputWriter::create(handle.as_fd(), SegmentLimits::default()).unwrap();
        for op in &before {
            writer.append(op.at_ns, op.stream, &op.bytes).unwrap();
        }
        let mut memory = MemorySegment::after(&writer).unwrap();
        let journal = Journal::open(dir.path()).unwrap().with_memory(memory.as_fd().try_clone_to_owned().unwrap());
        let mut all = before.clone();
        for _ in 0..big {
            all.push(JournalOp { at_ns: 2_000, stream: StreamName::Stdout, bytes: vec![b'x'; 50_000] });
        }
        all.extend(after.into_iter().map(|op| JournalOp { at_ns: op.at_ns + 2_000, ..op }));
        for op in &all[before.len()..] {
            memory.append(op.at_ns, op.stream, &op.bytes).unwrap();
        }
        prop_assert_eq!(journal.end().unwrap(), bytes_of(&all));
        prop_assert_eq!(memory.end(), bytes_of(&all));
        let lost = memory.lost_bytes();
        let base = writer.end();
        let mut got = Vec::new();
        let mut gap = None;
        let mut query = ByteQuery { streams: StreamSet::ALL, ..ByteQuery::starting_at(Cursor::START) };
        loop {
            let page = journal.read(&query).unwrap();
            gap = gap.or(page.gap);
            got.extend(page.chunks.into_iter().flat_map(|chunk| (chunk.offset..).zip(chunk.bytes)));
            query.from = page.next;
            if !page.more { break; }
        }
        let want: Vec<(u64, u8)> = (0..).zip(all.iter().flat_map(|op| op.bytes.clone())).filter(|(offset, _)| *offset < base || *offset >= base + lost).collect();
        prop_assert_eq!(got, want);
        prop_assert_eq!(gap, (lost > 0).then_some(Gap { from: base, to: base + lost }));
        ask_everything(&journal);
        let resumed = OutputWriter::resume_after(handle.as_fd(), SegmentLimits::default(), memory.end()).unwrap();
        prop_assert_eq!(resumed.end(), memory.end());
    }
}

/// A limit on file sizes refuses like a full disk, after a partial write. The test runs itself
/// under a shell that sets the limit and ignores SIGXFSZ.
#[test]
fn a_full_disk_leaves_the_files_valid() {
    const MARK: &str = "OSTLER_TEST_SMALL_FILES";
    if std::env::var_os(MARK).is_none() {
        let status = std::process::Command::new("sh")
            .args(["-c", "trap '' XFSZ; ulimit -S -f 16; exec \"$0\" --exact damage::a_full_disk_leaves_the_files_valid"])
            .arg(std::env::current_exe().unwrap())
            .env(MARK, "1")
            .stdout(std::process::Stdio::null())
            .status()
            .unwrap();
        assert!(status.success());
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let handle = std::fs::File::open(dir.path()).unwrap();
    let mut writer = OutputWriter::create(handle.as_fd(), SegmentLimits::default()).unwrap();
    writer.append(1, StreamName::Stdout, b"one\n").unwrap();
    // At least 8 KiB and at most 16 KiB are allowed, depending on the shell's unit.
    let refused = writer.append(2, StreamName::Stdout, &[b'x'; 40_000]);
    assert!(refused.unwrap_err().is_storage());
    assert_eq!(writer.end(), 4);
    assert_eq!(
        std::fs::read(dir.path().join("output.0.seg")).unwrap(),
        b"one\n"
    );
    writer.append(3, StreamName::Stdout, b"two\n").unwrap();
    let journal = Journal::open(dir.path()).unwrap();
    let lines = journal.lines(&LineQuery::default()).unwrap().lines;
    let lines: Vec<&[u8]> = lines.iter().map(|line| line.bytes.as_slice()).collect();
    assert_eq!(lines, [b"one", b"two"]);
    // And where the index has no room.
    let mut count = 0;
    while writer.append(4, StreamName::Stdout, b"\n").is_ok() {
        count += 1;
    }
    assert!(count >= 200, "{count}");
    assert_eq!(writer.end(), 8 + count);
    let mut limit = rustix::process::getrlimit(rustix::process::Resource::Fsize);
    limit.current = limit.maximum;
    rustix::process::setrlimit(rustix::process::Resource::Fsize, limit).unwrap();
    let mut memory = MemorySegment::after(&writer).unwrap();
    memory.append(5, StreamName::Stdout, b"three\n").unwrap();
    let journal = journal.with_memory(memory.as_fd().try_clone_to_owned().unwrap());
    let last = LineQuery {
        tail: Some(1),
        ..LineQuery::default()
    };
    assert_eq!(journal.lines(&last).unwrap().lines[0].bytes, b"three");
}

/// A line that was typed character by character is more chunks than are read at once.
#[test]
fn a_line_of_many_chunks_is_whole_and_begins_after_damage() {
    const CHARACTERS: usize = 700;
    const DAMAGED: usize = 300;
    let dir = tempfile::tempdir().unwrap();
    let handle = std::fs::File::open(dir.path()).unwrap();
    let mut writer = OutputWriter::create(handle.as_fd(), SegmentLimits::default()).unwrap();
    let text: Vec<u8> = (b'a'..=b'z').cycle().take(CHARACTERS).collect();
    for (at, byte) in (1..).zip(&text) {
        writer.append(at, StreamName::Pty, &[*byte]).unwrap();
        // Another stream between the chunks of the line.
        writer.append(at, StreamName::Stdin, b"-").unwrap();
    }
    let journal = Journal::open(dir.path()).unwrap();
    let from_last = LineQuery {
        from: Some(Cursor {
            offset: 2 * (CHARACTERS as u64 - 1),
            event: 0,
        }),
        unfinished: OpenLineMode::Preview,
        ..LineQuery::default()
    };
    let line = |journal: &Journal, query: &LineQuery| journal.lines(query).unwrap().lines.remove(0);
    let whole = line(&journal, &from_last);
    assert_eq!((whole.offset, &whole.bytes), (0, &text));
    let beginning = LineQuery {
        max_line_bytes: 10,
        ..from_last.clone()
    };
    let clipped = line(&journal, &beginning);
    assert_eq!(clipped.bytes, text[..10]);
    assert_eq!(clipped.clipped, CHARACTERS as u64 - 10);

    let path = dir.path().join("output.0.seg");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[2 * DAMAGED] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    let rest = line(&journal, &from_last);
    let begin = DAMAGED + 1;
    assert_eq!(
        (rest.offset, &rest.bytes[..]),
        (2 * begin as u64, &text[begin..])
    );
}
