//! A snapshot of a journal: the segments listed at one instant, opened as they are needed.

use std::cell::OnceCell;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::error::ReadError;
use crate::files::{SegmentEntry, TruncationPoint};
use crate::index::{IndexRecord, StreamCounters};
use crate::open_files::{self, OpenFiles};
use crate::query::{STREAMS, stream_code};
use crate::ring_snapshot::RingSnapshot;
use crate::segment::{OutputSegment, SegmentError, SharedSegment};

/// How often a snapshot is retried when files are removed during a read.
const STALE_RETRIES: usize = 16;

/// The position of one record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct RecordPosition {
    /// The index of the segment in the snapshot.
    pub(crate) slot: usize,
    /// The number of the record in the segment; the count of records for the position after the
    /// last.
    pub(crate) record: u64,
}

/// The range of one segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentExtent {
    /// The number of the segment.
    pub number: u32,
    /// The offset of its first byte.
    pub from: u64,
    /// The offset after its last byte.
    pub to: u64,
}

/// A journal at one instant, without data appended later.
#[derive(Debug)]
pub(crate) struct JournalSnapshot<'d> {
    dir: &'d OwnedFd,
    slots: Vec<SegmentSlot>,
    /// The truncation point: everything below was cleared.
    pub(crate) floor: u64,
    floor_counters: StreamCounters,
    /// The valid end as an offset.
    pub(crate) end: u64,
}

#[derive(Debug)]
struct SegmentSlot {
    entry: SegmentEntry,
    segment: OnceCell<OutputSegment>,
}

/// Runs `read` on a new snapshot, and again if files are removed during it.
pub(crate) fn with_snapshot<T>(
    dir: &OwnedFd,
    memory: Option<&OwnedFd>,
    open: Option<&OpenFiles>,
    read: impl Fn(&JournalSnapshot<'_>) -> Result<T, SegmentError>,
) -> Result<T, ReadError> {
    for _ in 0..STALE_RETRIES {
        match JournalSnapshot::open(dir, memory, open).and_then(|view| read(&view)) {
            Ok(answer) => return Ok(answer),
            Err(SegmentError::Read(error)) => return Err(error),
            Err(SegmentError::Stale | SegmentError::Damaged) => {}
        }
    }
    let not_found = std::io::Error::from(std::io::ErrorKind::NotFound);
    Err(ReadError::io("read", "output segments", not_found))
}

impl<'d> JournalSnapshot<'d> {
    pub(crate) fn open(
        dir: &'d OwnedFd,
        memory: Option<&OwnedFd>,
        open: Option<&OpenFiles>,
    ) -> Result<Self, SegmentError> {
        // Before the directory is listed: the current contents of memory are later on disk
        // completely or not at all, and contents written to disk before are there then.
        let ring = match memory {
            Some(memory) => RingSnapshot::read(memory)
                .map_err(|error| ReadError::io("read", "the memory segment", error))?,
            None => None,
        };
        let (listing, floor, last) = match open {
            Some(open) => open.refresh(dir)?,
            None => {
                let (listing, floor) = open_files::list(dir)?;
                (listing, floor, None)
            }
        };
        let slots = listing.segments.into_iter().filter(|one| one.has_index);
        let slots = slots.map(|listed| SegmentSlot {
            entry: listed,
            segment: OnceCell::new(),
        });
        let mut snapshot = JournalSnapshot {
            dir,
            slots: slots.collect(),
            floor: floor.offset,
            floor_counters: floor.tallies,
            end: floor.offset,
        };
        snapshot.find_valid_end(last.as_ref())?;
        if let Some(open) = open {
            let slot = snapshot.slots.last().and_then(|slot| slot.segment.get());
            if let Some(shared) = slot.and_then(OutputSegment::shared) {
                open.cache_segment(shared.clone());
            }
        }
        if let Some(held) = ring {
            snapshot.attach(held)?;
        }
        Ok(snapshot)
    }

    /// Finds the valid end: segments without a valid record at the end are skipped.
    fn find_valid_end(&mut self, open: Option<&SharedSegment>) -> Result<(), SegmentError> {
        while let Some(slot) = self.slots.last_mut() {
            let number = slot.entry.number;
            let opened = match open.filter(|open| open.number() == number) {
                Some(open) => open.refresh(self.dir.as_fd(), self.floor),
                None => OutputSegment::open_at_valid_end(self.dir.as_fd(), slot.entry, self.floor),
            };
            match opened {
                Ok(segment) => {
                    if segment.count > 0 || self.slots.len() == 1 {
                        self.end = segment.end()?.max(self.floor);
                        let slot = &self.slots[self.slots.len() - 1];
                        slot.segment.get_or_init(|| segment);
                        return Ok(());
                    }
                }
                Err(SegmentError::Damaged) => {}
                Err(error) => return Err(error),
            }
            self.slots.pop();
        }
        Ok(())
    }

    /// Adds the memory segment after the last one, unless the disk has its content by now.
    fn attach(&mut self, snapshot: RingSnapshot) -> Result<(), SegmentError> {
        let last = self.slots.last().map_or(0, |slot| slot.entry.number);
        let disk_end = match self.len().checked_sub(1) {
            Some(last) => self.segment(last)?.end()?,
            None => 0,
        };
        if snapshot.base() < disk_end {
            return Ok(());
        }
        // A number apart, so that data overwritten in between reads as a gap.
        let number = last + if snapshot.base() == disk_end { 1 } else { 2 };
        let counters = snapshot.tallies();
        self.end = self.end.max(snapshot.end());
        let entry = SegmentEntry {
            number,
            has_index: true,
            has_segment: true,
            has_compressed: false,
        };
        let segment = OnceCell::from(OutputSegment::memory(number, counters, snapshot));
        self.slots.push(SegmentSlot { entry, segment });
        Ok(())
    }

    pub(crate) fn dir(&self) -> BorrowedFd<'_> {
        self.dir.as_fd()
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    /// The segment in a slot, opened on first use.
    pub(crate) fn segment(&self, slot: usize) -> Result<&OutputSegment, SegmentError> {
        let slot = self.slots.get(slot).ok_or(SegmentError::Stale)?;
        if let Some(segment) = slot.segment.get() {
            return Ok(segment);
        }
        let segment = OutputSegment::open(self.dir.as_fd(), slot.entry)?;
        Ok(slot.segment.get_or_init(|| segment))
    }

    /// As [`segment`](Self::segment), none where its index has no valid header.
    pub(crate) fn valid_segment(
        &self,
        slot: usize,
    ) -> Result<Option<&OutputSegment>, SegmentError> {
        match self.segment(slot) {
            Ok(segment) => Ok(Some(segment)),
            Err(SegmentError::Damaged) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Whether the segment in `slot` directly follows the one before it.
    pub(crate) fn is_adjacent(&self, slot: usize) -> bool {
        slot > 0 && self.slots[slot].entry.number == self.slots[slot - 1].entry.number + 1
    }

    /// The end as a truncation point: the result of clearing everything now.
    pub(crate) fn as_floor(&self) -> Result<TruncationPoint, SegmentError> {
        let counters = match self.len().checked_sub(1) {
            Some(last) => self.counters_at(last, self.end)?,
            None => self.floor_counters,
        };
        Ok(TruncationPoint {
            offset: self.end,
            tallies: counters,
        })
    }

    /// The ranges of the segments on disk; those without a valid header are left out.
    pub(crate) fn extents(&self) -> Result<Vec<SegmentExtent>, SegmentError> {
        let mut extents = Vec::with_capacity(self.len());
        for slot in 0..self.len() {
            if let Some(segment) = self.valid_segment(slot)? {
                extents.push(SegmentExtent {
                    number: segment.number,
                    from: segment.base,
                    to: segment.end()?,
                });
            }
        }
        Ok(extents)
    }

    /// The offset of the oldest byte kept.
    pub(crate) fn start(&self) -> Result<u64, SegmentError> {
        for slot in 0..self.len() {
            if let Some(segment) = self.valid_segment(slot)? {
                return Ok(segment.base.max(self.floor).min(self.end));
            }
        }
        Ok(self.end)
    }

    /// The first record that ends after `offset`: the one that contains it, or the first after the
    /// gap it is in. The position after the last record if there is none.
    pub(crate) fn locate(&self, offset: u64) -> Result<RecordPosition, SegmentError> {
        if self.len() == 0 {
            return Ok(RecordPosition { slot: 0, record: 0 });
        }
        let slot = self.last_slot(|segment| Ok(segment.base <= offset))?;
        let Some(segment) = self.valid_segment(slot)? else {
            return Ok(RecordPosition { slot, record: 0 });
        };
        let record = partition_records(segment, |record| record.end() <= offset)?;
        Ok(self.normalize(RecordPosition { slot, record }, segment.count))
    }

    /// The first record read at or after this time.
    pub(crate) fn locate_time(&self, at_ns: i64) -> Result<RecordPosition, SegmentError> {
        if self.len() == 0 {
            return Ok(RecordPosition { slot: 0, record: 0 });
        }
        let is_before = |segment: &OutputSegment| {
            let first = segment.record(0)?;
            Ok(first.is_none_or(|record| record.at_ns < at_ns))
        };
        let slot = self.last_slot(is_before)?;
        let Some(segment) = self.valid_segment(slot)? else {
            return Ok(RecordPosition { slot, record: 0 });
        };
        let record = partition_records(segment, |record| record.at_ns < at_ns)?;
        Ok(self.normalize(RecordPosition { slot, record }, segment.count))
    }

    /// The last slot for which `is_before` holds; 0 where there is none. It must hold for a prefix of
    /// the slots. Those without a valid header are passed over.
    pub(crate) fn last_slot(
        &self,
        is_before: impl Fn(&OutputSegment) -> Result<bool, SegmentError>,
    ) -> Result<usize, SegmentError> {
        let (mut low, mut high, mut found) = (0, self.len(), 0);
        // Most queries read the end, and the last segment is open already.
        if let Some(last) = high.checked_sub(1)
            && let Some(segment) = self.valid_segment(last)?
            && is_before(segment)?
        {
            return Ok(last);
        }
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            match self.valid_segment_within(low + 1, middle)? {
                Some((slot, segment)) if is_before(segment)? => (low, found) = (middle, slot),
                Some((slot, _)) => high = slot,
                None => low = middle,
            }
        }
        Ok(found)
    }

    /// The last segment of these slots that has a valid header, with its slot.
    fn valid_segment_within(
        &self,
        first: usize,
        last: usize,
    ) -> Result<Option<(usize, &OutputSegment)>, SegmentError> {
        for slot in (first..=last).rev() {
            if let Some(segment) = self.valid_segment(slot)? {
                return Ok(Some((slot, segment)));
            }
        }
        Ok(None)
    }

    /// Moves the position after a segment's last record to the next segment's first.
    fn normalize(&self, position: RecordPosition, count: u64) -> RecordPosition {
        if position.record == count && position.slot + 1 < self.len() {
            return RecordPosition {
                slot: position.slot + 1,
                record: 0,
            };
        }
        position
    }

    /// The stream counters before `offset`, which is in the segment of `slot` or at its end. Of
    /// damaged chunks at its end, neither bytes nor newlines are counted.
    pub(crate) fn counters_at(
        &self,
        slot: usize,
        offset: u64,
    ) -> Result<StreamCounters, SegmentError> {
        match self.valid_segment(slot)? {
            Some(segment) => {
                let floor = TruncationPoint {
                    offset: self.floor,
                    tallies: self.floor_counters,
                };
                counters_in_segment(self.dir(), segment, offset, floor)
            }
            None => Ok(StreamCounters::default()),
        }
    }
}

/// The stream counters before `offset`, by one segment alone.
pub(crate) fn counters_in_segment(
    dir: BorrowedFd<'_>,
    segment: &OutputSegment,
    offset: u64,
    floor: TruncationPoint,
) -> Result<StreamCounters, SegmentError> {
    let cleared = floor.offset >= segment.base;
    let mut counters = if cleared {
        floor.tallies
    } else {
        segment.counters
    };
    let mut newest = [None; STREAMS.len()];
    let mut raw = Vec::new();
    let mut index = 0;
    let mut expected = segment.base;
    'records: while index < segment.count {
        segment.records(index, &mut raw, RECORDS_STEP)?;
        if raw.is_empty() {
            break;
        }
        for raw in &raw {
            let record = IndexRecord::decode(raw);
            let follows = record.is_some_and(|record| record.offset == expected);
            if let Some(record) = record {
                if record.offset < offset && record.end() > floor.offset {
                    let code = usize::from(stream_code(record.stream));
                    counters[code].bytes += u64::from(record.len).min(offset - record.offset);
                    newest[code] = Some(index);
                } else if record.offset >= offset && follows {
                    break 'records;
                }
                expected = record.end();
            }
            index += 1;
        }
    }
    for (counter, place) in counters.iter_mut().zip(newest) {
        let Some((record, bytes)) = intact_chunk_before(dir, segment, place, floor.offset)? else {
            continue;
        };
        let within = usize::try_from(offset - record.offset).unwrap_or(usize::MAX);
        let bytes = &bytes[..within.min(bytes.len())];
        counter.newlines = record.line + memchr::memchr_iter(b'\n', bytes).count() as u64;
        counter.open = bytes.last().is_some_and(|&last| last != b'\n');
    }
    Ok(counters)
}

/// The chunk at `place`, or the newest one of its stream before it that is intact and not cleared.
fn intact_chunk_before(
    dir: BorrowedFd<'_>,
    segment: &OutputSegment,
    place: Option<u64>,
    floor: u64,
) -> Result<Option<(IndexRecord, Vec<u8>)>, SegmentError> {
    let Some(newest) = place else { return Ok(None) };
    let stream = segment.record(newest)?.map(|record| record.stream);
    for place in (0..=newest).rev() {
        let record = segment.record(place)?;
        if record.is_some_and(|record| Some(record.stream) == stream && record.end() > floor)
            && let Some(chunk) = segment.chunk(dir, place)?
        {
            return Ok(Some(chunk));
        }
    }
    Ok(None)
}

/// The number of records read in one step.
const RECORDS_STEP: usize = 1024;

/// The first record of a segment for which `is_before` does not hold; it must hold for a prefix.
/// Searches back from the end first, in growing steps: most queries are about the newest records.
///
/// A search that a damaged record misled ends at that record, so only the records beside the result
/// are checked. Where they do not follow from each other, all are looked at in turn.
fn partition_records(
    segment: &OutputSegment,
    is_before: impl Fn(&IndexRecord) -> bool,
) -> Result<u64, SegmentError> {
    let holds = |place| -> Result<bool, SegmentError> {
        Ok(segment
            .record(place)?
            .is_some_and(|record| is_before(&record)))
    };
    let (mut low, mut high, mut step) = (0, segment.count, 1);
    while low < high && step <= high {
        if holds(high - step)? {
            low = high - step + 1;
            break;
        }
        high -= step;
        step *= 2;
    }
    while low < high {
        let middle = low + (high - low) / 2;
        if holds(middle)? {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if low == segment.count || follows(segment, low)? {
        return Ok(low);
    }
    partition_of_damaged(segment, is_before)
}

/// Whether a record begins where the one before it ends.
pub(crate) fn follows(segment: &OutputSegment, place: u64) -> Result<bool, SegmentError> {
    let expected = match place.checked_sub(1) {
        Some(before) => segment.record(before)?.map(|record| record.end()),
        None => Some(segment.base),
    };
    let offset = segment.record(place)?.map(|record| record.offset);
    Ok(offset.is_some() && offset == expected)
}

/// As [`partition_records`], by those records alone that follow from the one before them or lead to
/// the one after them. Others may precede the result, or follow it.
fn partition_of_damaged(
    segment: &OutputSegment,
    is_before: impl Fn(&IndexRecord) -> bool,
) -> Result<u64, SegmentError> {
    let mut expected = Some(segment.base);
    let mut next = segment.record(0)?;
    let mut low = 0;
    for place in 0..segment.count {
        let record = next;
        next = segment.record(place + 1)?;
        if let Some(record) = record {
            let is_continued = next.is_some_and(|next| next.offset == record.end());
            if Some(record.offset) == expected || is_continued {
                if !is_before(&record) {
                    break;
                }
                low = place + 1;
            }
        }
        expected = record.map(|record| record.end());
    }
    Ok(low)
}
