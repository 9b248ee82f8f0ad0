//! One segment with its index, opened for reading.

mod segment_files;

use std::cell::OnceCell;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use rustix::fs::OFlags;

use crate::compress::FrameReader;
use crate::error::ReadError;
use crate::files::{self, SegmentEntry};
use crate::index::{CHUNK_BYTES, IndexRecord, StreamCounters, relative_offset};
use crate::ring_snapshot::RingSnapshot;
use crate::tail::{self, RawRecord, SegmentTail, TAIL_BYTES, TAIL_RECORDS};

use segment_files::SegmentFiles;

pub(crate) use segment_files::SegmentError;

/// The most new records read after the last known one; with more, the end is read again.
const NEW_RECORDS: usize = 64;

/// A segment: numbered records, each of which covers the next bytes of it.
#[derive(Debug)]
pub(crate) struct OutputSegment {
    pub(crate) number: u32,
    pub(crate) base: u64,
    /// The counters before its first byte.
    pub(crate) counters: StreamCounters,
    /// The number of records to be trusted, as far as the file's length goes.
    pub(crate) count: u64,
    /// The last of them with its number, once it was read.
    newest: Option<(u64, IndexRecord)>,
    source: SegmentSource,
}

#[derive(Debug)]
enum SegmentSource {
    Disk {
        shared: SharedSegment,
        /// Its content, where it is compressed.
        compressed: OnceCell<FrameReader>,
    },
    Memory(RingSnapshot),
}

/// A segment on disk and its open files, which several snapshots can share.
#[derive(Debug, Clone)]
pub(crate) struct SharedSegment(Arc<SegmentFiles>);

impl SharedSegment {
    fn open(dir: BorrowedFd<'_>, entry: SegmentEntry) -> Result<Self, SegmentError> {
        let open = SegmentFiles::open(dir, entry.number)?;
        Ok(Self(Arc::new(open)))
    }

    pub(crate) fn number(&self) -> u32 {
        self.0.number
    }

    /// The segment in its current state, its end verified. The part verified before is in memory;
    /// only new records are read, and the last known one again, which shows whether the files were
    /// truncated meanwhile.
    pub(crate) fn refresh(
        &self,
        dir: BorrowedFd<'_>,
        floor: u64,
    ) -> Result<OutputSegment, SegmentError> {
        let mut tail = self.0.tail.lock();
        if !self.read_new_records(dir, &mut tail)? {
            tail.clear();
            let count = self.0.count()?;
            self.read_end(dir, &mut tail, count, floor)?;
        }
        if let Some((last, raw)) = tail.last() {
            let newest = IndexRecord::decode(&raw).map(|record| (last, record));
            return Ok(self.build_segment(last + 1, newest));
        }
        drop(tail);
        let mut segment = self.segment()?;
        segment.find_valid_end(dir, floor)?;
        Ok(segment)
    }

    /// Reads new records into the tail; false where the tail cannot be continued.
    fn read_new_records(
        &self,
        dir: BorrowedFd<'_>,
        tail: &mut SegmentTail,
    ) -> Result<bool, SegmentError> {
        let Some((last, known)) = tail.last() else {
            return Ok(false);
        };
        let mut raw = Vec::with_capacity(NEW_RECORDS);
        self.0.available_records(last, &mut raw, NEW_RECORDS)?;
        let Some((first, new)) = raw.split_first().filter(|_| raw.len() < NEW_RECORDS) else {
            return Ok(false);
        };
        Ok(*first == known && self.load_records(dir, tail, last + 1, new)?)
    }

    /// Reads as much of the segment's end into an empty tail as it holds; nothing where the newest
    /// record is invalid or cleared.
    fn read_end(
        &self,
        dir: BorrowedFd<'_>,
        tail: &mut SegmentTail,
        count: u64,
        floor: u64,
    ) -> Result<(), SegmentError> {
        let begin = count.saturating_sub(TAIL_RECORDS as u64 / 2);
        let mut raw = Vec::new();
        self.0
            .records(begin, &mut raw, relative_offset(begin, count))?;
        let is_kept =
            |raw: &RawRecord| IndexRecord::decode(raw).is_some_and(|it| it.offset >= floor);
        let cleared = raw.iter().rposition(|raw| !is_kept(raw));
        let readable = &raw[cleared.map_or(0, |at| at + 1)..];
        let fitting = tail::count_fitting(readable, TAIL_RECORDS, TAIL_BYTES / 2);
        for record_count in [fitting, 1] {
            let Some(from) = raw
                .len()
                .checked_sub(record_count)
                .filter(|_| record_count <= readable.len())
            else {
                return Ok(());
            };
            if self.follows(begin, &raw, from)
                && self.load_records(dir, tail, begin + from as u64, &raw[from..])?
            {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Whether a record begins where the previous one ends, as far as that one is among these.
    fn follows(&self, begin: u64, raw: &[RawRecord], place: usize) -> bool {
        let offset = raw
            .get(place)
            .and_then(IndexRecord::decode)
            .map(|it| it.offset);
        match place.checked_sub(1) {
            Some(before) => offset == IndexRecord::decode(&raw[before]).map(|it| it.end()),
            None => begin > 0 || offset == Some(self.0.base),
        }
    }

    /// Adds records with their bytes to the tail; false where they are invalid.
    fn load_records(
        &self,
        dir: BorrowedFd<'_>,
        tail: &mut SegmentTail,
        first: u64,
        records: &[RawRecord],
    ) -> Result<bool, SegmentError> {
        let decoded = |raw: Option<&RawRecord>| raw.and_then(IndexRecord::decode);
        let mut bytes = Vec::new();
        if let Some((begin, last)) = decoded(records.first()).zip(decoded(records.last())) {
            let len = relative_offset(begin.offset, last.end());
            let is_small = len
                <= if records.len() > 1 {
                    TAIL_BYTES
                } else {
                    CHUNK_BYTES
                };
            let is_sound = is_small && begin.offset >= self.0.base;
            if !is_sound || !self.0.bytes(dir, begin.offset, len, &mut bytes)? {
                return Ok(false);
            }
        }
        Ok(tail.extend(first, records, &bytes))
    }

    fn build_segment(&self, count: u64, newest: Option<(u64, IndexRecord)>) -> OutputSegment {
        let open = &self.0;
        OutputSegment {
            number: open.number,
            base: open.base,
            counters: open.counters,
            count,
            newest,
            source: SegmentSource::Disk {
                shared: self.clone(),
                compressed: OnceCell::new(),
            },
        }
    }

    /// The segment as far as its index reaches now.
    fn segment(&self) -> Result<OutputSegment, SegmentError> {
        Ok(self.build_segment(self.0.count()?, None))
    }
}

impl OutputSegment {
    pub(crate) fn open(dir: BorrowedFd<'_>, entry: SegmentEntry) -> Result<Self, SegmentError> {
        SharedSegment::open(dir, entry)?.segment()
    }

    /// Opens a segment and cuts it to its valid part. Its end is in memory then, which most queries
    /// read.
    pub(crate) fn open_at_valid_end(
        dir: BorrowedFd<'_>,
        entry: SegmentEntry,
        floor: u64,
    ) -> Result<Self, SegmentError> {
        SharedSegment::open(dir, entry)?.refresh(dir, floor)
    }

    /// Its files, to keep them open; none for a segment in memory.
    pub(crate) fn shared(&self) -> Option<&SharedSegment> {
        match &self.source {
            SegmentSource::Disk { shared, .. } => Some(shared),
            SegmentSource::Memory(_) => None,
        }
    }

    /// The memory segment after the last segment of a journal.
    pub(crate) fn memory(number: u32, tallies: StreamCounters, snapshot: RingSnapshot) -> Self {
        Self {
            number,
            base: snapshot.base(),
            counters: tallies,
            count: snapshot.records().len() as u64,
            newest: None,
            source: SegmentSource::Memory(snapshot),
        }
    }

    /// Reads up to `buffer.len()` raw records from `first` on; returns their number.
    pub(crate) fn records(
        &self,
        first: u64,
        buffer: &mut Vec<RawRecord>,
        max_records: usize,
    ) -> Result<(), SegmentError> {
        let left = usize::try_from(self.count.saturating_sub(first)).unwrap_or(usize::MAX);
        let count = max_records.min(left);
        buffer.clear();
        match &self.source {
            SegmentSource::Disk { shared, .. } => {
                if !shared.0.tail.lock().records(first, count, buffer) {
                    shared.0.records(first, buffer, count)?;
                }
            }
            SegmentSource::Memory(snapshot) => {
                let from = usize::try_from(first).unwrap_or(usize::MAX);
                let records = snapshot.records().get(from..).unwrap_or_default();
                buffer.extend_from_slice(&records[..count.min(records.len())]);
            }
        }
        Ok(())
    }

    /// Reads and decodes one record; none where it is invalid.
    pub(crate) fn record(&self, place: u64) -> Result<Option<IndexRecord>, SegmentError> {
        let mut buffer = Vec::with_capacity(1);
        self.records(place, &mut buffer, 1)?;
        Ok(buffer.first().and_then(IndexRecord::decode))
    }

    /// Replaces `buffer` with `len` bytes from journal offset `from` on; fewer where there are
    /// fewer.
    pub(crate) fn bytes(
        &self,
        dir: BorrowedFd<'_>,
        from: u64,
        len: usize,
        buffer: &mut Vec<u8>,
    ) -> Result<(), SegmentError> {
        let at = from.saturating_sub(self.base);
        match &self.source {
            SegmentSource::Memory(snapshot) => {
                let at = usize::try_from(at).unwrap_or(usize::MAX);
                let bytes = snapshot.bytes().get(at..).unwrap_or_default();
                buffer.clear();
                buffer.extend_from_slice(&bytes[..len.min(bytes.len())]);
                Ok(())
            }
            SegmentSource::Disk {
                shared,
                compressed: framed,
            } => {
                let is_read = framed.get().is_none()
                    && (shared.0.tail.lock().bytes(from, len, buffer)
                        || shared.0.bytes(dir, from, len, buffer)?);
                if is_read {
                    return Ok(());
                }
                let frames = match framed.get() {
                    Some(frames) => frames,
                    None => self.open_frames(dir, framed)?,
                };
                buffer.resize(len, 0);
                let filled = frames.read_at(buffer, at);
                let filled = filled.map_err(|error| self.failed(files::COMPRESSED, error))?;
                buffer.truncate(filled);
                Ok(())
            }
        }
    }

    /// The chunk of one record, if both are intact.
    pub(crate) fn chunk(
        &self,
        dir: BorrowedFd<'_>,
        place: u64,
    ) -> Result<Option<(IndexRecord, Vec<u8>)>, SegmentError> {
        let mut raw = Vec::with_capacity(1);
        self.records(place, &mut raw, 1)?;
        let Some((raw, record)) = raw
            .first()
            .and_then(|raw| IndexRecord::decode(raw).map(|record| (raw, record)))
        else {
            return Ok(None);
        };
        if record.offset < self.base {
            return Ok(None);
        }
        let mut bytes = Vec::new();
        self.bytes(dir, record.offset, record.len as usize, &mut bytes)?;
        Ok(IndexRecord::is_intact(raw, &bytes).then_some((record, bytes)))
    }

    fn open_frames<'f>(
        &self,
        dir: BorrowedFd<'_>,
        framed: &'f OnceCell<FrameReader>,
    ) -> Result<&'f FrameReader, SegmentError> {
        let failed = |error| self.failed(files::COMPRESSED, error);
        let file = files::open(dir, self.number, files::COMPRESSED, OFlags::RDONLY);
        let file = file.map_err(failed)?.ok_or(SegmentError::Stale)?;
        let frames = FrameReader::open(file).map_err(failed)?;
        Ok(framed.get_or_init(|| frames))
    }

    fn failed(&self, suffix: &str, error: io::Error) -> SegmentError {
        SegmentError::Read(ReadError::io(
            "read",
            files::segment_file_name(self.number, suffix),
            error,
        ))
    }

    /// Cuts `count` after the last record that passes its checksum; reads only the last one when
    /// that is valid.
    pub(crate) fn find_valid_end(
        &mut self,
        dir: BorrowedFd<'_>,
        floor: u64,
    ) -> Result<(), SegmentError> {
        if self.count == 0 {
            return Ok(());
        }
        let last = self.count - 1;
        let mut newest = Vec::with_capacity(2);
        self.records(last.saturating_sub(1), &mut newest, 2)?;
        let record = newest.pop().as_ref().and_then(IndexRecord::decode);
        let before = newest.first().map(IndexRecord::decode);
        let follows = |record: &IndexRecord| match before {
            None => last == 0 && record.offset == self.base,
            Some(before) => before.is_some_and(|before| before.end() == record.offset),
        };
        let Some(record) = record.filter(follows) else {
            return self.cut_after_last_intact(dir, floor);
        };
        // The bytes may have been dropped on purpose.
        if record.end() > floor && self.chunk(dir, last)?.is_none() {
            return self.cut_after_last_intact(dir, floor);
        }
        self.newest = Some((last, record));
        Ok(())
    }

    /// Cuts `count` after the last record that passes its checksum or is cleared: what was torn by a
    /// crash goes, and damage in the middle hides nothing after it.
    pub(crate) fn cut_after_last_intact(
        &mut self,
        dir: BorrowedFd<'_>,
        floor: u64,
    ) -> Result<(), SegmentError> {
        while let Some(last) = self.count.checked_sub(1) {
            let is_cleared = |record: &IndexRecord| {
                (self.base..=floor).contains(&record.end()) && record.offset >= self.base
            };
            let record = self.record(last)?;
            if let Some(record) = record
                && (is_cleared(&record) || self.chunk(dir, last)?.is_some())
            {
                self.newest = Some((last, record));
                return Ok(());
            }
            self.count = last;
        }
        Ok(())
    }

    /// The journal offset after its last record.
    pub(crate) fn end(&self) -> Result<u64, SegmentError> {
        if self.count == 0 {
            return Ok(self.base);
        }
        let last = self.count - 1;
        if let Some((_, record)) = self.newest.as_ref().filter(|(place, _)| *place == last) {
            return Ok(record.end());
        }
        let last = self.record(last)?;
        Ok(last.map_or(self.base, |last| last.end()))
    }
}
