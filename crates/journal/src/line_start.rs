//! The beginning of a line that starts before the position where reading begins.

use ostler_model::StreamName;

use crate::index::{IndexRecord, relative_offset};
use crate::open_line::OpenLine;
use crate::query::stream_code;
use crate::record_iter::RecordBlock;
use crate::segment::{OutputSegment, SegmentError};
use crate::snapshot::{JournalSnapshot, RecordPosition};
use crate::tail::RawRecord;

/// The number of records read in one step backward.
const STEP_RECORDS: u64 = 256;
/// The number of records read in one step forward.
const WINDOW_RECORDS: usize = 256;

/// The line that continues into `record`, without the bytes of `record` itself. Where the
/// beginning of the line is gone, it begins with the oldest byte kept.
pub(crate) fn line_continuing_into(
    snapshot: &JournalSnapshot<'_>,
    place: RecordPosition,
    record: &IndexRecord,
    keep: usize,
) -> Result<OpenLine, SegmentError> {
    if keep == 0
        && let Some(line) = measure_line(snapshot, place, record)?
    {
        return Ok(line);
    }
    let chunks = chunks_of_line(snapshot, place, record.stream, record.line)?;
    let mut reader = ChunkReader::new(snapshot);
    let mut line = OpenLine {
        offset: record.offset,
        at_ns: record.at_ns,
        number: record.line + 1,
        ..OpenLine::default()
    };
    for place in chunks.into_iter().rev() {
        if line.len > 0 && line.kept.len() >= keep {
            // Enough is buffered: of the rest only the length matters, and the index has it.
            if let Some(record) = reader.record(place)? {
                line.len += u64::from(record.len);
                line.end = record.end();
            }
            continue;
        }
        let Some((record, bytes)) = reader.chunk(place)? else {
            // Damaged: the bytes before it do not belong to those after it.
            line.kept.clear();
            line.len = 0;
            continue;
        };
        let from = memchr::memrchr(b'\n', bytes).map_or(0, |newline| newline + 1);
        if line.len == 0 {
            line.offset = record.offset + from as u64;
            line.at_ns = record.at_ns;
        }
        line.extend(&bytes[from..], record.offset + from as u64, keep);
    }
    if line.len == 0 {
        line.offset = record.offset;
        line.at_ns = record.at_ns;
    }
    Ok(line)
}

/// As [`line_continuing_into`] without any text: of all chunks but the line's first one only the
/// index is read. None where that chunk is damaged, or holds nothing of the line.
fn measure_line(
    snapshot: &JournalSnapshot<'_>,
    place: RecordPosition,
    record: &IndexRecord,
) -> Result<Option<OpenLine>, SegmentError> {
    let mut cursor = BackwardCursor::new(snapshot, place, record.stream);
    let mut line = OpenLine {
        offset: record.offset,
        at_ns: record.at_ns,
        number: record.line + 1,
        ..OpenLine::default()
    };
    let mut oldest = None;
    while let Some((slot, at, earlier)) = cursor.previous()? {
        if oldest.is_none() {
            line.end = earlier.end();
        }
        line.len += u64::from(earlier.len);
        let begins_here = earlier.begins_line || earlier.line != record.line;
        oldest = Some((slot, at, earlier));
        if begins_here {
            break;
        }
    }
    let Some((slot, at, oldest)) = oldest else {
        return Ok(Some(line));
    };
    let chunk = snapshot.segment(slot)?.chunk(snapshot.dir(), at)?;
    let newline = chunk.map(|(_, bytes)| memchr::memrchr(b'\n', &bytes));
    let before = newline.map(|newline| newline.map_or(0, |newline| newline as u64 + 1));
    Ok(before
        .filter(|&before| before < u64::from(oldest.len))
        .map(|before| OpenLine {
            offset: oldest.offset + before,
            at_ns: oldest.at_ns,
            len: line.len - before,
            ..line
        }))
}

/// The line of `stream` that is open at `offset`, if there is one.
pub(crate) fn open_line_before(
    snapshot: &JournalSnapshot<'_>,
    offset: u64,
    stream: StreamName,
    keep: usize,
) -> Result<Option<OpenLine>, SegmentError> {
    let position = snapshot.locate(offset)?;
    let mut cursor = BackwardCursor::new(snapshot, position, stream);
    let Some((slot, at, record)) = cursor.previous()? else {
        return Ok(None);
    };
    let Some((_, bytes)) = snapshot.segment(slot)?.chunk(snapshot.dir(), at)? else {
        return Ok(None);
    };
    let from = memchr::memrchr(b'\n', &bytes).map_or(0, |newline| newline + 1);
    if from == bytes.len() {
        return Ok(None);
    }
    let mut line = if from == 0 && !record.begins_line {
        line_continuing_into(snapshot, RecordPosition { slot, record: at }, &record, keep)?
    } else {
        let before = memchr::memchr_iter(b'\n', &bytes[..from]).count() as u64;
        OpenLine {
            offset: record.offset + from as u64,
            at_ns: record.at_ns,
            number: record.line + before + 1,
            ..OpenLine::default()
        }
    };
    line.extend(&bytes[from..], record.offset + from as u64, keep);
    Ok(Some(line))
}

/// Reads chunks at increasing positions, many with one system call: a line can be thousands of
/// chunks, one for each character that was typed.
struct ChunkReader<'v, 'd> {
    snapshot: &'v JournalSnapshot<'d>,
    /// Raw records from `window_at` on, of one segment.
    window: Vec<RawRecord>,
    window_at: RecordPosition,
    /// Some of them with their bytes.
    block: RecordBlock,
}

impl<'v, 'd> ChunkReader<'v, 'd> {
    fn new(snapshot: &'v JournalSnapshot<'d>) -> Self {
        Self {
            snapshot,
            window: Vec::new(),
            window_at: RecordPosition::default(),
            block: RecordBlock::default(),
        }
    }

    /// The record at a position; none where it is invalid.
    fn record(&mut self, place: RecordPosition) -> Result<Option<IndexRecord>, SegmentError> {
        let raw = self.raw_records(place)?;
        Ok(raw.first().and_then(IndexRecord::decode))
    }

    /// The record at a position with its bytes; none where either is damaged.
    fn chunk(
        &mut self,
        place: RecordPosition,
    ) -> Result<Option<(IndexRecord, &[u8])>, SegmentError> {
        if index_after(self.block.position, place, self.block.records.len()).is_none() {
            self.raw_records(place)?;
            let skip = index_after(self.window_at, place, self.window.len());
            let raw = skip.map_or(&[][..], |skip| &self.window[skip..]);
            let segment = self.snapshot.segment(place.slot)?;
            self.block.position = place;
            self.block.fill(self.snapshot, segment, raw)?;
        }
        let block = &self.block;
        let Some(index) = index_after(block.position, place, block.records.len()) else {
            return Ok(None);
        };
        let record = block.records[index];
        let from = relative_offset(block.first_offset(), record.offset);
        Ok(Some((
            record,
            &block.bytes[from..from + record.len as usize],
        )))
    }

    /// The raw records from a position on, as many as are in memory.
    fn raw_records(&mut self, place: RecordPosition) -> Result<&[RawRecord], SegmentError> {
        if index_after(self.window_at, place, self.window.len()).is_none() {
            let segment = self.snapshot.segment(place.slot)?;
            segment.records(place.record, &mut self.window, WINDOW_RECORDS)?;
            self.window_at = place;
        }
        let skip = index_after(self.window_at, place, self.window.len());
        Ok(skip.map_or(&[], |skip| &self.window[skip..]))
    }
}

/// The index of `place` among `count` records from `first` on.
fn index_after(first: RecordPosition, place: RecordPosition, count: usize) -> Option<usize> {
    let skip = place.record.checked_sub(first.record)?;
    let skip = usize::try_from(skip).ok()?;
    (first.slot == place.slot && skip < count).then_some(skip)
}

/// The chunks before `position` that hold parts of the line with `newlines` newlines before it, newest
/// first.
fn chunks_of_line(
    snapshot: &JournalSnapshot<'_>,
    place: RecordPosition,
    stream: StreamName,
    newlines: u64,
) -> Result<Vec<RecordPosition>, SegmentError> {
    let mut chunks = Vec::new();
    let mut cursor = BackwardCursor::new(snapshot, place, stream);
    while let Some((slot, at, record)) = cursor.previous()? {
        chunks.push(RecordPosition { slot, record: at });
        if record.begins_line || record.line != newlines {
            break;
        }
    }
    Ok(chunks)
}

/// Iterates backward over the records of one stream, as long as a line of it may continue.
struct BackwardCursor<'v, 'd> {
    snapshot: &'v JournalSnapshot<'d>,
    stream: StreamName,
    place: RecordPosition,
    window: Vec<RawRecord>,
    window_at: RecordPosition,
}

impl<'v, 'd> BackwardCursor<'v, 'd> {
    const fn new(
        snapshot: &'v JournalSnapshot<'d>,
        place: RecordPosition,
        stream: StreamName,
    ) -> Self {
        Self {
            snapshot,
            stream,
            place,
            window: Vec::new(),
            window_at: RecordPosition {
                slot: usize::MAX,
                record: 0,
            },
        }
    }

    /// The next older record of the stream; none at the beginning of the kept output, at a gap, at
    /// damage, or where the index marks no line as open.
    fn previous(&mut self) -> Result<Option<(usize, u64, IndexRecord)>, SegmentError> {
        loop {
            while self.place.record == 0 {
                if !self.enter_previous_segment()? {
                    return Ok(None);
                }
            }
            let Some(segment) = self.snapshot.valid_segment(self.place.slot)? else {
                return Ok(None);
            };
            self.place.record -= 1;
            let Some(record) = self.record(segment)? else {
                return Ok(None);
            };
            if record.end() <= self.snapshot.floor {
                return Ok(None);
            }
            if record.stream == self.stream {
                return Ok(Some((self.place.slot, self.place.record, record)));
            }
        }
    }

    fn enter_previous_segment(&mut self) -> Result<bool, SegmentError> {
        let slot = self.place.slot;
        if slot == 0 {
            return Ok(false);
        }
        if slot < self.snapshot.len() {
            let code = usize::from(stream_code(self.stream));
            let open = self
                .snapshot
                .valid_segment(slot)?
                .is_some_and(|segment| segment.counters[code].open);
            if !open || !self.snapshot.is_adjacent(slot) {
                return Ok(false);
            }
        }
        let Some(segment) = self.snapshot.valid_segment(slot - 1)? else {
            return Ok(false);
        };
        self.place = RecordPosition {
            slot: slot - 1,
            record: segment.count,
        };
        Ok(true)
    }

    fn record(&mut self, segment: &OutputSegment) -> Result<Option<IndexRecord>, SegmentError> {
        let record_number = self.place.record;
        let is_in_window =
            self.window_at.slot == self.place.slot && self.window_at.record <= record_number;
        if !is_in_window || record_number - self.window_at.record >= self.window.len() as u64 {
            let from = (record_number + 1).saturating_sub(STEP_RECORDS);
            let count = usize::try_from(record_number + 1 - from).unwrap_or(1);
            segment.records(from, &mut self.window, count)?;
            self.window_at = RecordPosition {
                slot: self.place.slot,
                record: from,
            };
        }
        let skip = usize::try_from(record_number - self.window_at.record).unwrap_or(usize::MAX);
        Ok(self.window.get(skip).and_then(IndexRecord::decode))
    }
}
