//! A disk that refuses and accepts at random: a reader that was open all the time, and the files at
//! the end, compared with the appended data.

use std::os::fd::AsFd;

use ostler_model::Cursor;
use proptest::prelude::*;

use super::*;
use crate::memory_ring::MEMORY_BYTES;
use crate::query::{ByteQuery, Chunk, LineQuery, OpenLineMode, StreamSet};
use crate::test_disk::{claim_room, leave_room};
use crate::{Journal, MemorySlot};

#[path = "fallback_room_tests.rs"]
mod room;

/// The most bytes that the shim reads at once while output goes to memory.
const READ_BYTES: usize = 64 * 1024;
/// The most bytes that may be overwritten although there is room: 256 KiB between two checks, and
/// a record at each end.
const LOSS_BYTES: u64 = 400 * 1024;

/// One operation on a writer, its disk or its reader.
#[derive(Debug, Clone)]
enum Op {
    /// Appends `len` bytes, a newline after each `every`.
    Append { len: usize, every: usize, err: bool },
    /// Leaves this many bytes of room on the disk.
    Fill(usize),
    /// The same, while the disk reports that it has more, as some quotas do.
    Lie(usize),
    /// Frees the disk without notice.
    MakeRoom,
    /// Frees the disk, and the writer tries to return.
    Free,
    /// The writer checks the disk, whatever its state.
    Look,
    /// The reader reads this many pages.
    Read(usize),
    /// Clears all output.
    Clear,
    /// Begins the next attempt.
    NextAttempt,
}

fn operation() -> impl Strategy<Value = Op> {
    let append = |len: std::ops::Range<usize>| {
        (len, 1usize..40, any::<bool>()).prop_map(|(len, every, err)| Op::Append {
            len,
            every,
            err,
        })
    };
    prop_oneof![
        10 => append(1..60),
        2 => append(1..20_000),
        1 => append(100_000..700_000),
        3 => (0usize..300).prop_map(Op::Fill),
        1 => (0usize..300).prop_map(Op::Lie),
        3 => Just(Op::MakeRoom),
        3 => Just(Op::Free),
        2 => Just(Op::Look),
        5 => (1usize..4).prop_map(Op::Read),
        1 => Just(Op::Clear),
        1 => Just(Op::NextAttempt),
    ]
}

/// A writer, the appended data, and a reader.
struct FallbackFixture {
    dir: tempfile::TempDir,
    limits: SegmentLimits,
    writer: FallbackWriter,
    slot: MemorySlot,
    journal: Journal,
    /// All bytes that were appended, by offset.
    appended: Vec<u8>,
    /// The stream of each of these bytes.
    streams: Vec<StreamName>,
    /// The gaps that the writer reported.
    missing: Vec<Gap>,
    /// Output that was only in memory when an attempt ended.
    lost: Vec<Gap>,
    cleared_to: u64,
    /// The number of overwritten bytes when room came back while output went to memory.
    room_since: Option<u64>,
    /// Whether the disk reported false room since.
    lied: bool,
    /// The position of the reader.
    next: Cursor,
    /// Which bytes were read.
    read: Vec<bool>,
    gaps: Vec<Gap>,
    at_ns: i64,
}

impl FallbackFixture {
    fn new(segment_bytes: u64) -> Self {
        leave_room(None);
        claim_room(false);
        let dir = tempfile::tempdir().expect("a directory");
        let handle = std::fs::File::open(dir.path()).expect("it opens");
        let limits = SegmentLimits { segment_bytes };
        let (writer, error) = FallbackWriter::create(handle.as_fd(), limits);
        assert!(error.is_none(), "{error:?}");
        let slot = MemorySlot::default();
        let journal = Journal::open(dir.path()).expect("a journal");
        Self {
            journal: journal.with_memory_slot(slot.clone()),
            dir,
            limits,
            writer,
            slot,
            appended: Vec::new(),
            streams: Vec::new(),
            missing: Vec::new(),
            lost: Vec::new(),
            cleared_to: 0,
            room_since: None,
            lied: false,
            next: Cursor::START,
            read: Vec::new(),
            gaps: Vec::new(),
            at_ns: 0,
        }
    }

    fn carry_out(&mut self, op: &Op) {
        match *op {
            Op::Append { len, every, err } => self.append(len, every, err),
            Op::Fill(bytes) => self.fill(bytes, false),
            Op::Lie(bytes) => self.fill(bytes, true),
            Op::MakeRoom => self.make_room(),
            Op::Free => {
                self.make_room();
                self.look();
            }
            Op::Look => self.look(),
            Op::Read(pages) => {
                for _ in 0..pages {
                    self.read();
                }
            }
            Op::Clear => {
                self.make_room();
                self.cleared_to = self.journal.clear().expect("cleared").to;
            }
            Op::NextAttempt => self.next_attempt(),
        }
        assert_eq!(self.writer.end(), self.appended.len() as u64);
        assert_eq!(self.journal.end().expect("an end"), self.readable_end());
    }

    fn fill(&mut self, bytes: usize, lies: bool) {
        leave_room(Some(bytes));
        claim_room(lies);
        self.lied |= lies;
        self.room_since = None;
    }

    fn make_room(&mut self) {
        leave_room(None);
        claim_room(false);
        self.lied &= !self.writer.is_on_disk();
        self.room_since
            .get_or_insert_with(|| overwritten(&self.writer));
    }

    /// Appends bytes that encode their offset, so that a misplaced byte is noticed.
    fn append(&mut self, len: usize, every: usize, err: bool) {
        let stream = if err {
            StreamName::Stderr
        } else {
            StreamName::Stdout
        };
        let from = self.appended.len();
        let byte = |at: usize| {
            if (at + 1).is_multiple_of(every) {
                b'\n'
            } else {
                b'a' + u8::try_from((from + at) % 23).unwrap_or(0)
            }
        };
        let bytes: Vec<u8> = (0..len).map(byte).collect();
        self.at_ns += 1;
        for piece in bytes.chunks(READ_BYTES) {
            self.append_piece(stream, piece);
        }
        self.appended.extend(bytes);
        self.streams.resize(self.appended.len(), stream);
        self.read.resize(self.appended.len(), false);
    }

    /// Appends as the shim does.
    fn append_piece(&mut self, stream: StreamName, piece: &[u8]) {
        if let Some(missing) = self.writer.try_return_to_disk(self.at_ns, piece.len()) {
            self.check_loss(missing.iter().map(|gap| gap.to - gap.from).sum());
            self.missing.extend(missing);
        }
        if self.writer.append(self.at_ns, stream, piece).is_err() {
            self.put_memory();
        }
        self.check_loss(overwritten(&self.writer));
    }

    /// Once there is room, nothing is overwritten; where the ring was full by then, little is.
    fn check_loss(&self, lost: u64) {
        let Some(before) = self.room_since.filter(|_| !self.lied) else {
            return;
        };
        let more = if before == 0 { 0 } else { LOSS_BYTES };
        assert!(lost <= before + more, "{before}: {lost}");
    }

    fn put_memory(&self) {
        let memory = self.writer.memory().expect("a memory segment");
        let file = memory.as_fd().try_clone_to_owned().expect("a descriptor");
        self.slot.set(file);
    }

    fn look(&mut self) {
        if let Ok(missing) = self.writer.return_to_disk() {
            self.missing.extend(missing);
        }
    }

    /// Begins the next attempt. One that ends in memory leaves that to its readers until the next
    /// one writes.
    fn next_attempt(&mut self) {
        self.make_room();
        let (from, end) = (self.writer.end() - self.in_memory(), self.writer.end());
        if from < end {
            self.lost.push(Gap { from, to: end });
            self.slot.clear();
        }
        self.writer.remove_extent_file();
        let handle = std::fs::File::open(self.dir.path()).expect("it opens");
        let (writer, error) = FallbackWriter::resume_after(handle.as_fd(), self.limits, end);
        assert!(error.is_none(), "{error:?}");
        self.writer = writer;
    }

    fn in_memory(&self) -> u64 {
        let memory = self.writer.memory();
        memory.map_or(0, |memory| memory.end() - memory.base())
    }

    /// The journal's end for readers: output lost with an attempt cannot be read until the next one
    /// has written.
    fn readable_end(&self) -> u64 {
        let end = self.writer.end();
        match self.lost.last() {
            Some(lost) if lost.to == end => {
                let before = self.lost.iter().rev();
                let from = before.fold(end, |at, gap| if gap.to == at { gap.from } else { at });
                from.max(self.cleared_to)
            }
            Some(_) | None => end,
        }
    }

    /// Reads one page; returns whether there is more.
    fn read(&mut self) -> bool {
        let page = self
            .journal
            .read(&ByteQuery {
                streams: StreamSet::ALL,
                max_bytes: 50_000,
                ..ByteQuery::starting_at(self.next)
            })
            .expect("a page");
        assert_eq!(page.damaged, None);
        if let Some(gap) = page.gap {
            assert!(gap.from >= self.next.offset, "{gap:?}");
            self.gaps.push(gap);
        }
        for chunk in page.chunks {
            let range = self.check_chunk(&chunk);
            let read = &mut self.read[range];
            assert!(!read.contains(&true), "read twice: {chunk:?}");
            read.fill(true);
        }
        assert!(page.next.offset >= self.next.offset);
        let on = page.next != self.next;
        self.next = page.next;
        page.more && on
    }

    /// Checks that a chunk holds the appended data at its offset; returns its range.
    fn check_chunk(&self, chunk: &Chunk) -> std::ops::Range<usize> {
        let from = usize::try_from(chunk.offset).expect("it fits");
        let range = from..from + chunk.bytes.len();
        assert!(self.appended[range.clone()] == chunk.bytes, "at {from}");
        let streams = &self.streams[range.clone()];
        assert!(streams.iter().all(|stream| *stream == chunk.stream));
        range
    }

    /// Checks that every byte was read at its offset, or was reported as a gap.
    fn check(&mut self) {
        while self.read() {}
        let mut accounted = self.read.clone();
        for gap in &self.gaps {
            accounted[range(gap)].fill(true);
        }
        let end = usize::try_from(self.next.offset).expect("it fits");
        let missing = accounted[..end].iter().position(|accounted| !accounted);
        assert_eq!(missing, None, "of {end}: {:?}", self.gaps);
    }

    /// With room on the disk, checks that everything outside gaps is there, and that lines have
    /// their numbers.
    fn check_files(&mut self) {
        self.make_room();
        self.look();
        assert!(self.writer.is_on_disk());
        self.slot.clear();
        let journal = Journal::open(self.dir.path()).expect("a journal");
        let mut found = vec![false; self.appended.len()];
        let mut query = ByteQuery {
            streams: StreamSet::ALL,
            ..ByteQuery::starting_at(Cursor::START)
        };
        loop {
            let page = journal.read(&query).expect("a page");
            assert_eq!(page.damaged, None);
            for chunk in page.chunks {
                found[self.check_chunk(&chunk)].fill(true);
            }
            query.from = page.next;
            if !page.more {
                break;
            }
        }
        let mut kept = vec![true; self.appended.len()];
        kept[..usize::try_from(self.cleared_to).expect("it fits")].fill(false);
        for gap in self.missing.iter().chain(&self.lost) {
            kept[range(gap)].fill(false);
        }
        assert!(found == kept, "{:?} {:?}", self.missing, self.lost);
        self.check_lines(&journal);
        let lost: u64 = self.missing.iter().map(|gap| gap.to - gap.from).sum();
        assert!(self.writer.lost_bytes() <= lost);
    }

    /// Checks that line numbers count every newline before them, those of lost bytes included,
    /// except for those lost with an attempt.
    fn check_lines(&self, journal: &Journal) {
        let query = LineQuery {
            streams: StreamSet::ALL,
            unfinished: OpenLineMode::Final,
            ..LineQuery::default()
        };
        let page = journal.lines(&query).expect("a page");
        if !self.lost.is_empty() {
            return;
        }
        let mut places = (0u64..).zip(self.appended.iter().zip(&self.streams));
        let mut counts = [(StreamName::Stdout, 1), (StreamName::Stderr, 1)];
        for line in page.lines {
            for (_, (byte, stream)) in places.by_ref().take_while(|(at, _)| *at < line.offset) {
                note(&mut counts, *byte, *stream);
            }
            let count = counts.iter().find(|(stream, _)| *stream == line.stream);
            assert_eq!(Some(&(line.stream, line.number)), count, "{line:?}");
            // The iterator has consumed the first byte of the line.
            let at = usize::try_from(line.offset).expect("it fits");
            note(&mut counts, self.appended[at], line.stream);
        }
    }
}

fn overwritten(writer: &FallbackWriter) -> u64 {
    writer.memory().map_or(0, MemorySegment::lost_bytes)
}

fn note(counts: &mut [(StreamName, u64)], byte: u8, of: StreamName) {
    let count = counts.iter_mut().find(|(stream, _)| *stream == of);
    if let Some((_, count)) = count.filter(|_| byte == b'\n') {
        *count += 1;
    }
}

fn range(gap: &Gap) -> std::ops::Range<usize> {
    let place = |offset| usize::try_from(offset).expect("it fits");
    place(gap.from)..place(gap.to)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn offsets_stay_and_readers_see_no_seam(
        ops in prop::collection::vec(operation(), 1..40),
        segment in prop_oneof![Just(64u64), Just(5_000), Just(crate::writer::SEGMENT_BYTES)],
    ) {
        let mut fixture = FallbackFixture::new(segment);
        for op in &ops {
            fixture.carry_out(op);
        }
        fixture.check();
        fixture.check_files();
    }
}

#[test]
fn what_memory_holds_is_on_disk_after_the_return() {
    let mut fixture = FallbackFixture::new(crate::writer::SEGMENT_BYTES);
    fixture.append(100, 10, false);
    leave_room(Some(30));
    fixture.append(1_000, 10, true);
    assert!(!fixture.writer.is_on_disk());
    assert_eq!(fixture.writer.lost_bytes(), 1_000);
    assert!(
        fixture.writer.return_to_disk().is_err(),
        "there is no room yet"
    );
    assert_eq!(
        fixture.journal.end().expect("an end"),
        1_100,
        "nothing has changed"
    );
    leave_room(None);
    assert_eq!(fixture.writer.return_to_disk().expect("there is room"), []);
    assert!(fixture.writer.is_on_disk() && fixture.writer.lost_bytes() == 0);
    fixture.append(50, 10, false);
    fixture.check();
    assert_eq!(fixture.gaps, []);
    fixture.check_files();
}

#[test]
fn what_the_ring_lost_is_a_gap_for_good() {
    let mut fixture = FallbackFixture::new(crate::writer::SEGMENT_BYTES);
    fixture.append(100, 10, false);
    leave_room(Some(0));
    for _ in 0..3 {
        fixture.append(700_000, 10, false);
    }
    leave_room(None);
    let missing = fixture.writer.return_to_disk().expect("there is room");
    let [gap] = missing.as_slice() else {
        panic!("one gap: {missing:?}");
    };
    assert_eq!(gap.from, 100);
    assert!(fixture.writer.end() - gap.to <= MEMORY_BYTES, "{gap:?}");
    assert_eq!(fixture.writer.lost_bytes(), gap.to - gap.from);
    fixture.missing = missing;
    fixture.append(50, 10, false);
    fixture.check();
    assert_eq!(fixture.gaps, fixture.missing);
    fixture.check_files();
}

/// Where no file takes the bytes, offsets advance, and the disk continues after the gap.
#[test]
fn what_nothing_takes_is_a_gap_too() {
    let mut fixture = FallbackFixture::new(crate::writer::SEGMENT_BYTES);
    fixture.append(100, 10, false);
    leave_room(Some(0));
    fixture.append(10, 10, false);
    if let Some(away) = &mut fixture.writer.memory_output {
        away.memory = None;
        away.dropped_bytes = 10;
    }
    fixture.slot.clear();
    fixture.append(40, 10, false);
    assert_eq!(
        (fixture.writer.end(), fixture.writer.lost_bytes()),
        (150, 50)
    );
    leave_room(None);
    fixture.look();
    assert_eq!(fixture.missing, [Gap { from: 100, to: 150 }]);
    fixture.append(10, 10, false);
    fixture.check();
    assert_eq!(fixture.gaps, fixture.missing);
}
