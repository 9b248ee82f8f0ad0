//! How many lines end before an offset, and at which offset a line ends.

use crate::filter::newlines;
use crate::index::{IndexRecord, StreamCounters};
use crate::query::{StreamSet, stream_code};
use crate::record_iter::{ForwardRecords, RecordBlock, RecordStep};
use crate::segment::{OutputSegment, SegmentError};
use crate::snapshot::JournalSnapshot;

/// Records read in one step.
const RECORDS_STEP: u64 = 1024;

/// The lines of all output streams that have ended.
pub(super) fn ended_lines(counters: &StreamCounters) -> u64 {
    newlines(counters, StreamSet::OUTPUT)
}

/// How many lines end at or before `offset`.
pub(super) fn lines_before(
    snapshot: &JournalSnapshot<'_>,
    offset: u64,
) -> Result<u64, SegmentError> {
    if snapshot.len() == 0 {
        return Ok(ended_lines(&snapshot.as_floor()?.tallies));
    }
    let position = snapshot.locate(offset)?;
    Ok(ended_lines(&snapshot.counters_at(position.slot, offset)?))
}

/// The offset after the end of the line of this number: the oldest byte kept where it ended before,
/// the first one after it where it ended in a gap, the end where it has not ended.
pub(super) fn offset_after_line(
    snapshot: &JournalSnapshot<'_>,
    number: u64,
) -> Result<u64, SegmentError> {
    let start = snapshot.start()?;
    if snapshot.len() == 0 || number <= lines_before(snapshot, start)? {
        return Ok(start);
    }
    let slot = snapshot.last_slot(|segment| Ok(ended_lines(&segment.counters) < number))?;
    let Some(segment) = snapshot.valid_segment(slot)? else {
        return Ok(snapshot.end);
    };
    let end = segment.end()?;
    let counters = snapshot.counters_at(slot, end)?;
    if ended_lines(&counters) >= number {
        let inside = offset_in_segment(snapshot, segment, counters, number)?;
        // Beside damage, a record may end behind the output that can be read.
        return Ok(inside.max(start).min(snapshot.end));
    }
    let next = match slot + 1 < snapshot.len() {
        true => snapshot.valid_segment(slot + 1)?,
        false => None,
    };
    Ok(next.map_or(snapshot.end, |next| next.base.min(snapshot.end)))
}

/// As [`offset_after_line`], for a line that ends in this segment, which `counters` count to its
/// end. Goes back from there: a record holds the count of its own stream only, so those of the
/// others are known from later records.
fn offset_in_segment(
    snapshot: &JournalSnapshot<'_>,
    segment: &OutputSegment,
    mut counters: StreamCounters,
    number: u64,
) -> Result<u64, SegmentError> {
    let mut raw = Vec::new();
    let mut upper = segment.count;
    while upper > 0 {
        let lower = upper.saturating_sub(RECORDS_STEP);
        let step = usize::try_from(upper - lower).unwrap_or(usize::MAX);
        segment.records(lower, &mut raw, step)?;
        for (at, raw) in raw.iter().enumerate().rev() {
            let Some(record) = IndexRecord::decode(raw) else {
                continue;
            };
            let counter = &mut counters[usize::from(stream_code(record.stream))];
            counter.newlines = counter.newlines.min(record.line);
            let before = ended_lines(&counters);
            if before < number {
                return offset_in_record(
                    snapshot,
                    segment,
                    lower + at as u64,
                    &record,
                    number - before,
                );
            }
        }
        upper = lower;
    }
    Ok(segment.base)
}

/// The offset after the `nth` newline of a record, from 1.
fn offset_in_record(
    snapshot: &JournalSnapshot<'_>,
    segment: &OutputSegment,
    place: u64,
    record: &IndexRecord,
    nth: u64,
) -> Result<u64, SegmentError> {
    let Some((_, bytes)) = segment.chunk(snapshot.dir(), place)? else {
        return Ok(record.end());
    };
    let nth = usize::try_from(nth - 1).unwrap_or(usize::MAX);
    let newline = memchr::memchr_iter(b'\n', &bytes).nth(nth);
    Ok(newline.map_or(record.end(), |at| record.offset + at as u64 + 1))
}

/// For each of these offsets, in ascending order and after `from`, how many lines end at or before
/// it.
pub(super) fn lines_before_each(
    snapshot: &JournalSnapshot<'_>,
    from: u64,
    offsets: &[u64],
) -> Result<Vec<u64>, SegmentError> {
    let mut counter = OffsetCounter {
        count: lines_before(snapshot, from)?,
        offsets,
        counts: Vec::with_capacity(offsets.len()),
    };
    let mut forward = ForwardRecords::new(snapshot, from)?;
    let mut block = RecordBlock::default();
    while counter.counts.len() < offsets.len() {
        match forward.next_block(&mut block)? {
            RecordStep::Block => counter.count_block(&block, from),
            RecordStep::Gap(gap) => {
                counter.reach(gap.to.saturating_sub(1));
                counter.count = lines_before(snapshot, gap.to)?;
            }
            RecordStep::Damaged(_) | RecordStep::End => break,
        }
    }
    counter.reach(u64::MAX);
    Ok(counter.counts)
}

struct OffsetCounter<'o> {
    /// The lines that have ended so far.
    count: u64,
    offsets: &'o [u64],
    /// Those before each of the first offsets.
    counts: Vec<u64>,
}

impl OffsetCounter<'_> {
    fn count_block(&mut self, block: &RecordBlock, from: u64) {
        let runs = block.runs();
        for run in runs.filter(|run| StreamSet::OUTPUT.contains(run.stream)) {
            let base = run.records[0].offset;
            for newline in memchr::memchr_iter(b'\n', run.bytes) {
                let newline = base + newline as u64;
                if newline >= from {
                    self.reach(newline);
                    self.count += 1;
                }
            }
        }
    }

    /// No line ends between the last one counted and the byte at `offset`.
    fn reach(&mut self, offset: u64) {
        let left = &self.offsets[self.counts.len()..];
        let reached = left.partition_point(|wanted| *wanted <= offset);
        self.counts.extend(std::iter::repeat_n(self.count, reached));
    }
}
