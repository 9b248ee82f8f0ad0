//! How many lines were printed when.

use crate::index::IndexRecord;
use crate::query::{STREAMS, StreamSet, stream_code};
use crate::read::timestamp;
use crate::segment::{OutputSegment, SegmentError};
use crate::snapshot::JournalSnapshot;
use ostler_model::StreamName;

use super::page::LineExtent;
use super::query::{OutputShape, ShapeBucket};

/// Records read in one step, where all are read.
const RECORDS_STEP: usize = 1024;
/// The most records that are read; of more, some at equal distances. Then the counts are right, and
/// the times as far apart as these.
const RECORDS_READ: u64 = 256 * 1024;

/// Counts lines in `buckets` slices of time, by the index alone.
pub(crate) fn shape(
    snapshot: &JournalSnapshot<'_>,
    buckets: usize,
) -> Result<OutputShape, SegmentError> {
    let extent = LineExtent::of(snapshot)?;
    let shape = OutputShape {
        first_kept: extent.first_kept,
        ended: extent.ended,
        times: None,
        bytes: snapshot.end.saturating_sub(snapshot.start()?),
        buckets: Vec::new(),
    };
    let Some((first, last)) = time_range(snapshot)? else {
        return Ok(shape);
    };
    let mut counter = ShapeCounter {
        first,
        span: u128::from(last.abs_diff(first)) + 1,
        buckets: vec![ShapeBucket::default(); buckets.max(1)],
        newest: [None; STREAMS.len()],
    };
    let mut records = 0;
    for slot in 0..snapshot.len() {
        records += snapshot.valid_segment(slot)?.map_or(0, |it| it.count);
    }
    let stride = records.div_ceil(RECORDS_READ).max(1);
    for slot in 0..snapshot.len() {
        let Some(segment) = snapshot.valid_segment(slot)? else {
            continue;
        };
        for_each_record(segment, stride, |record| {
            if record.end() > snapshot.floor {
                counter.add(&record);
            }
        })?;
        let is_last = slot + 1 == snapshot.len();
        if is_last || !snapshot.is_adjacent(slot + 1) {
            // What is lost after it is in no slice.
            let counters = snapshot.counters_at(slot, segment.end()?)?;
            for stream in StreamSet::OUTPUT.iter() {
                let newlines = counters[usize::from(stream_code(stream))].newlines;
                counter.finish(stream, newlines);
            }
        }
    }
    Ok(OutputShape {
        times: Some((timestamp(first), timestamp(last))),
        buckets: counter.buckets,
        ..shape
    })
}

/// When the first and the last kept record was read.
fn time_range(snapshot: &JournalSnapshot<'_>) -> Result<Option<(i64, i64)>, SegmentError> {
    let start = snapshot.start()?;
    if snapshot.len() == 0 || start >= snapshot.end {
        return Ok(None);
    }
    let position = snapshot.locate(start)?;
    let first = match snapshot.valid_segment(position.slot)? {
        Some(segment) => segment.record(position.record)?,
        None => None,
    };
    let last = match snapshot.valid_segment(snapshot.len() - 1)? {
        Some(segment) if segment.count > 0 => segment.record(segment.count - 1)?,
        Some(_) | None => None,
    };
    Ok(first
        .zip(last)
        .map(|(first, last)| (first.at_ns, last.at_ns)))
}

/// Every record, or every `stride`th and the last one.
fn for_each_record(
    segment: &OutputSegment,
    stride: u64,
    mut visit: impl FnMut(IndexRecord),
) -> Result<(), SegmentError> {
    let step = if stride == 1 { RECORDS_STEP } else { 1 };
    let mut raw = Vec::new();
    let mut place = 0;
    while place < segment.count {
        segment.records(place, &mut raw, step)?;
        raw.iter()
            .filter_map(IndexRecord::decode)
            .for_each(&mut visit);
        place += match stride {
            1 if raw.is_empty() => segment.count,
            1 => raw.len() as u64,
            stride => stride,
        };
    }
    Ok(())
}

#[derive(Debug)]
struct ShapeCounter {
    /// The time of the first record, in nanoseconds.
    first: i64,
    /// The nanoseconds to the last one, both included.
    span: u128,
    buckets: Vec<ShapeBucket>,
    /// The newest record of each stream, of which the next one tells how many lines ended in it.
    newest: [Option<IndexRecord>; STREAMS.len()],
}

impl ShapeCounter {
    fn add(&mut self, record: &IndexRecord) {
        if !StreamSet::OUTPUT.contains(record.stream) {
            return;
        }
        self.finish(record.stream, record.line);
        self.newest[usize::from(stream_code(record.stream))] = Some(*record);
    }

    /// Counts the lines of a stream that ended since its newest record began, of which there are
    /// `newlines` in all.
    fn finish(&mut self, stream: StreamName, newlines: u64) {
        let newest = self.newest[usize::from(stream_code(stream))].take();
        let Some(newest) = newest else { return };
        let lines = newlines.saturating_sub(newest.line);
        let bucket = self.bucket(newest.at_ns);
        bucket.lines += lines;
        if stream == StreamName::Stderr {
            bucket.stderr_lines += lines;
        }
    }

    fn bucket(&mut self, at_ns: i64) -> &mut ShapeBucket {
        let passed = u128::from(at_ns.max(self.first).abs_diff(self.first));
        let count = self.buckets.len();
        let place = passed * count as u128 / self.span;
        let place = usize::try_from(place).unwrap_or(usize::MAX).min(count - 1);
        &mut self.buckets[place]
    }
}
