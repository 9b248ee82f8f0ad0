//! Iteration over a snapshot in verified blocks: many records, their bytes contiguous.

use ostler_model::StreamName;

use crate::index::{CHUNK_BYTES, IndexRecord, relative_offset};
use crate::query::Gap;
use crate::segment::{OutputSegment, SegmentError};
use crate::snapshot::{JournalSnapshot, RecordPosition};
use crate::tail::RawRecord;

/// The most bytes of output in a block; a single longer chunk makes a longer block.
const BLOCK_BYTES: u64 = 256 * 1024;
/// The most records in a block.
const BLOCK_RECORDS: usize = 1024;

/// Consecutive records of one segment with their bytes.
#[derive(Debug, Default)]
pub(crate) struct RecordBlock {
    /// The position of the first record.
    pub(crate) position: RecordPosition,
    /// The records, without gaps between them, all intact.
    pub(crate) records: Vec<IndexRecord>,
    pub(crate) bytes: Vec<u8>,
}

/// Consecutive records of one stream with their bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RecordRun<'b> {
    pub(crate) stream: StreamName,
    /// The position of its first record.
    pub(crate) position: RecordPosition,
    pub(crate) records: &'b [IndexRecord],
    pub(crate) bytes: &'b [u8],
}

/// The result of one step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RecordStep {
    /// The block was filled.
    Block,
    /// Bytes are gone or damaged here; the iteration continues after them.
    Gap(Gap),
    /// Nothing from this offset on can be read.
    Damaged(u64),
    /// Everything was read.
    End,
}

impl RecordBlock {
    pub(crate) fn first_offset(&self) -> u64 {
        self.records.first().map_or(0, |record| record.offset)
    }

    pub(crate) fn end(&self) -> u64 {
        self.records.last().map_or(0, IndexRecord::end)
    }

    /// Splits the block into runs of one stream.
    pub(crate) fn runs(&self) -> impl DoubleEndedIterator<Item = RecordRun<'_>> {
        let base = self.first_offset();
        let mut next_record = 0;
        let groups = self
            .records
            .chunk_by(|one, next| one.stream == next.stream)
            .map(move |records| {
                let first_record = next_record;
                next_record += records.len() as u64;
                (first_record, records)
            });
        let runs: Vec<RecordRun<'_>> = groups
            .map(|(first, records)| {
                let from = relative_offset(base, records[0].offset);
                let to = relative_offset(base, records[records.len() - 1].end());
                RecordRun {
                    stream: records[0].stream,
                    position: RecordPosition {
                        slot: self.position.slot,
                        record: self.position.record + first,
                    },
                    records,
                    bytes: &self.bytes[from..to],
                }
            })
            .collect();
        runs.into_iter()
    }

    /// Fills the block with as many of `raw` as follow from each other and are intact. Returns
    /// their number.
    pub(crate) fn fill(
        &mut self,
        snapshot: &JournalSnapshot<'_>,
        segment: &OutputSegment,
        raw: &[RawRecord],
    ) -> Result<usize, SegmentError> {
        self.records.clear();
        for raw in raw {
            let Some(record) = IndexRecord::decode(raw) else {
                break;
            };
            let expected = self.records.last().map_or(record.offset, IndexRecord::end);
            if record.offset != expected || record.offset < segment.base {
                break;
            }
            let from = self.records.first().map_or(record.offset, |one| one.offset);
            if !self.records.is_empty() && record.end() - from > BLOCK_BYTES {
                break;
            }
            self.records.push(record);
        }
        let span = relative_offset(self.first_offset(), self.end());
        segment.bytes(snapshot.dir(), self.first_offset(), span, &mut self.bytes)?;
        self.truncate_at_damage(raw);
        Ok(self.records.len())
    }

    fn truncate_at_damage(&mut self, raw: &[RawRecord]) {
        let base = self.first_offset();
        let intact = self.records.iter().zip(raw).take_while(|(record, raw)| {
            let bytes = self
                .bytes
                .get(relative_offset(base, record.offset)..relative_offset(base, record.end()));
            bytes.is_some_and(|bytes| IndexRecord::is_intact(raw, bytes))
        });
        let count = intact.count();
        self.records.truncate(count);
        self.bytes
            .truncate(relative_offset(base, self.end().max(base)));
    }
}

/// Iterates forward from an offset. Damaged records are skipped, and reported as gaps.
#[derive(Debug)]
pub(crate) struct ForwardRecords<'v, 'd> {
    snapshot: &'v JournalSnapshot<'d>,
    /// Where the iteration began.
    from: u64,
    next: RecordPosition,
    /// The offset that the next record must have; none at the beginning.
    expected: Option<u64>,
    window: Vec<RawRecord>,
    window_at: RecordPosition,
}

impl<'v, 'd> ForwardRecords<'v, 'd> {
    /// Begins with the record that contains `from`, or with the first one after it.
    pub(crate) fn new(snapshot: &'v JournalSnapshot<'d>, from: u64) -> Result<Self, SegmentError> {
        Ok(Self {
            snapshot,
            from,
            next: snapshot.locate(from)?,
            expected: None,
            window: Vec::new(),
            window_at: RecordPosition::default(),
        })
    }

    /// Fills `block` with the next records.
    pub(crate) fn next_block(
        &mut self,
        block: &mut RecordBlock,
    ) -> Result<RecordStep, SegmentError> {
        let mut has_skipped = false;
        while self.next.slot < self.snapshot.len() {
            let Some(segment) = self.snapshot.valid_segment(self.next.slot)? else {
                has_skipped = true;
                self.enter_next_segment();
                continue;
            };
            if self.next.record >= segment.count {
                self.enter_next_segment();
                continue;
            }
            if self.fill(segment, block, has_skipped)? {
                return Ok(match self.gap_before(block) {
                    Some(gap) => {
                        self.expected = Some(gap.to);
                        RecordStep::Gap(gap)
                    }
                    None => {
                        self.next.record += block.records.len() as u64;
                        self.expected = Some(block.end());
                        RecordStep::Block
                    }
                });
            }
            has_skipped = true;
            self.next.record += 1;
        }
        // The last record of a snapshot was intact when the snapshot was taken.
        Ok(match has_skipped {
            true => RecordStep::Damaged(self.expected.unwrap_or(self.from)),
            false => RecordStep::End,
        })
    }

    const fn enter_next_segment(&mut self) {
        self.next = RecordPosition {
            slot: self.next.slot + 1,
            record: 0,
        };
    }

    /// What is missing between the position reached and a block.
    fn gap_before(&self, block: &RecordBlock) -> Option<Gap> {
        let gap = Gap {
            from: self.expected?,
            to: block.first_offset(),
        };
        (gap.to > gap.from).then_some(gap)
    }

    /// Fills `block` from the next record on; false where that one is damaged. Behind damage, one
    /// record is filled at first: the bytes of one that cannot be trusted may be many.
    fn fill(
        &mut self,
        segment: &OutputSegment,
        block: &mut RecordBlock,
        is_behind_damage: bool,
    ) -> Result<bool, SegmentError> {
        let skip = self.window_skip(segment)?;
        let raw = &self.window[skip..];
        if raw.is_empty() {
            // The file is shorter than it was: nothing else of it can be read.
            self.next.record = segment.count;
            return Ok(false);
        }
        let raw = if is_behind_damage { &raw[..1] } else { raw };
        block.position = self.next;
        let filled = block.fill(self.snapshot, segment, raw)?;
        if is_behind_damage && self.expected.is_none() {
            self.expected = Some(self.from);
        }
        let first = block.first_offset();
        let is_behind = self.expected.is_none_or(|expected| {
            // The iteration may begin within a record.
            first >= expected || (expected == self.from && block.end() > expected)
        });
        Ok(filled > 0 && is_behind)
    }

    /// Makes sure that the window holds the next record; returns its index in the window.
    fn window_skip(&mut self, segment: &OutputSegment) -> Result<usize, SegmentError> {
        if self.window_at.slot == self.next.slot
            && let Some(skip) = self.next.record.checked_sub(self.window_at.record)
            && let Ok(skip) = usize::try_from(skip)
            && skip < self.window.len()
        {
            return Ok(skip);
        }
        segment.records(self.next.record, &mut self.window, BLOCK_RECORDS)?;
        self.window_at = self.next;
        Ok(0)
    }
}

/// Iterates backward from a position, within one extent: it stops at gaps, at damage and at
/// `floor`.
#[derive(Debug)]
pub(crate) struct BackwardRecords<'v, 'd> {
    snapshot: &'v JournalSnapshot<'d>,
    /// The position after the next record.
    before: RecordPosition,
    /// The offset at which that record must end; none at the beginning.
    expected: Option<u64>,
}

impl<'v, 'd> BackwardRecords<'v, 'd> {
    pub(crate) const fn new(snapshot: &'v JournalSnapshot<'d>, before: RecordPosition) -> Self {
        Self {
            snapshot,
            before,
            expected: None,
        }
    }

    /// Fills `block` with the previous records; false if there is nothing readable.
    pub(crate) fn previous_block(&mut self, block: &mut RecordBlock) -> Result<bool, SegmentError> {
        while self.before.record == 0 {
            if self.before.slot == 0 || !self.enter_previous_segment()? {
                return Ok(false);
            }
        }
        if self.expected.is_some_and(|end| end <= self.snapshot.floor) {
            return Ok(false);
        }
        let Some(segment) = self.snapshot.valid_segment(self.before.slot)? else {
            return Ok(false);
        };
        let first = self.first_in_block(segment)?;
        let count = relative_offset(first, self.before.record);
        let mut raw = Vec::new();
        segment.records(first, &mut raw, count)?;
        if raw.len() != count {
            return Ok(false);
        }
        block.position = RecordPosition {
            slot: self.before.slot,
            record: first,
        };
        let mut left = raw.as_slice();
        // Of a block with damage, what follows the last damaged record.
        loop {
            let filled = block.fill(self.snapshot, segment, left)?;
            if filled == left.len() {
                break;
            }
            block.position.record += filled as u64 + 1;
            left = &left[filled + 1..];
        }
        let fits = self.expected.is_none_or(|end| block.end() == end);
        if left.is_empty() || !fits {
            return Ok(false);
        }
        self.before = block.position;
        self.expected = Some(block.first_offset());
        Ok(true)
    }

    /// Moves to the previous segment, if it adjoins.
    fn enter_previous_segment(&mut self) -> Result<bool, SegmentError> {
        // The slot may be the position after the last segment.
        if self.before.slot < self.snapshot.len() && !self.snapshot.is_adjacent(self.before.slot) {
            return Ok(false);
        }
        let slot = self.before.slot - 1;
        let Some(segment) = self.snapshot.valid_segment(slot)? else {
            return Ok(false);
        };
        self.before = RecordPosition {
            slot,
            record: segment.count,
        };
        Ok(segment.count > 0 || slot > 0)
    }

    /// The first record of the block that ends at `before`: as many as fit, at least one.
    fn first_in_block(&self, segment: &OutputSegment) -> Result<u64, SegmentError> {
        let from = self.before.record.saturating_sub(BLOCK_RECORDS as u64);
        let mut raw = Vec::new();
        segment.records(from, &mut raw, relative_offset(from, self.before.record))?;
        let mut first = self.before.record;
        let mut bytes = 0;
        for raw in raw.iter().rev() {
            let Some(record) = IndexRecord::decode(raw) else {
                break;
            };
            bytes += u64::from(record.len);
            let some = first < self.before.record;
            if some && (bytes > BLOCK_BYTES || record.end() <= self.snapshot.floor) {
                break;
            }
            first -= 1;
        }
        // An invalid record makes a block of one, which then fails to fill.
        Ok(first.min(self.before.record - 1))
    }
}

const _: () = assert!(BLOCK_BYTES <= CHUNK_BYTES as u64);
