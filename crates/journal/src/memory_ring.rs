//! The memory segment: a ring buffer with the newest output while the disk is full.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::sync::{Arc, PoisonError, RwLock};

use ostler_model::StreamName;
use rustix::fs::MemfdFlags;

use crate::disk_checks::RingFill;
use crate::error::WriteError;
use crate::files;
use crate::index::{self, IndexHeader, IndexRecord, RECORD_BYTES, StreamCounter, StreamCounters};
use crate::query::stream_code;
use crate::tail::RawRecord;
use crate::writer::{OutputWriter, WriteProgress};

/// The size of the memory file in bytes, header included.
pub const MEMORY_BYTES: u64 = 1024 * 1024;
/// The most bytes that one record of the ring covers.
const RING_CHUNK_BYTES: usize = 64 * 1024;

const FILE: &str = "the memory segment";
const HEADER_BYTES: u64 = 64;
const RING_BYTES: u64 = MEMORY_BYTES - HEADER_BYTES;
const MAGIC: [u8; 7] = *b"OSTLMEM";
const VERSION: u8 = 1;
const TAIL_AT: u64 = 16;
const HEAD_AT: u64 = 24;
const HEADER_LEN: usize = 32;
/// The offset, after the ring, of the stream counters at a head, encoded like the header of a
/// segment that begins at that position. Files of older writers end with the ring.
const STATE_AT: u64 = MEMORY_BYTES;
/// How often a reader retries to read a state that is being written.
const STATE_READS: usize = 8;

/// A memory file that takes output while the disk refuses it: the newest [`MEMORY_BYTES`] in the
/// record format; bytes that were overwritten read as a gap.
///
/// The ring holds records, each followed by its chunk, at positions that only increase; a position
/// modulo the size of the ring is its place in the file. The writer moves the tail before it
/// overwrites, and the head after it wrote. A reader reads the tail before and after it copies the
/// ring.
#[derive(Debug)]
pub struct MemorySegment {
    file: File,
    base: u64,
    /// The position of the oldest record kept.
    tail: u64,
    /// The position after the newest record.
    head: u64,
    /// The offset of the oldest byte kept.
    oldest: u64,
    progress: WriteProgress,
}

impl MemorySegment {
    /// Continues after `writer`, whose last append failed.
    ///
    /// # Errors
    /// When the kernel refuses the memory.
    pub fn after(writer: &OutputWriter) -> Result<Self, WriteError> {
        Self::create(writer.progress()).map_err(append_error)
    }

    /// Begins at `offset`, where the stream counters are unknown.
    pub(crate) fn at(offset: u64) -> Result<Self, WriteError> {
        let progress = WriteProgress {
            end: offset,
            ..WriteProgress::default()
        };
        Self::create(progress).map_err(append_error)
    }

    fn create(progress: WriteProgress) -> io::Result<Self> {
        let file = rustix::fs::memfd_create("ostler-output", MemfdFlags::CLOEXEC)?;
        let file = File::from(file);
        file.set_len(MEMORY_BYTES)?;
        let mut header = [0; HEADER_LEN];
        header[..7].copy_from_slice(&MAGIC);
        header[7] = VERSION;
        header[8..16].copy_from_slice(&progress.end.to_le_bytes());
        file.write_all_at(&header, 0)?;
        file.write_all_at(&state_header(0, progress.counters).encode(), STATE_AT)?;
        Ok(Self {
            file,
            base: progress.end,
            tail: 0,
            head: 0,
            oldest: progress.end,
            progress,
        })
    }

    /// Appends, overwriting the oldest records when the ring is full. Does not allocate.
    ///
    /// # Errors
    /// When the kernel refuses the write.
    pub fn append(
        &mut self,
        at_ns: i64,
        stream: StreamName,
        bytes: &[u8],
    ) -> Result<u64, WriteError> {
        for chunk in bytes.chunks(RING_CHUNK_BYTES) {
            self.append_chunk(at_ns, stream, chunk)
                .map_err(append_error)?;
        }
        Ok(self.progress.end)
    }

    /// The offset of its first byte, whether overwritten or not.
    #[must_use]
    pub const fn base(&self) -> u64 {
        self.base
    }

    /// The journal's end.
    #[must_use]
    pub const fn end(&self) -> u64 {
        self.progress.end
    }

    /// A copy of its content; none where it is empty.
    pub(crate) fn snapshot(&self) -> Result<Option<RingSnapshot>, WriteError> {
        let memory = self
            .file
            .try_clone()
            .map(OwnedFd::from)
            .map_err(append_error)?;
        RingSnapshot::read(&memory).map_err(append_error)
    }

    pub(crate) const fn progress(&self) -> WriteProgress {
        self.progress
    }

    /// The number of bytes that were overwritten.
    #[must_use]
    pub const fn lost_bytes(&self) -> u64 {
        self.oldest - self.base
    }

    /// The fill level before `bytes` more are appended.
    pub(crate) const fn fill(&self, bytes: u64) -> RingFill {
        let records = bytes.div_ceil(RING_CHUNK_BYTES as u64);
        let end = self.head + bytes + records * RECORD_BYTES as u64;
        RingFill {
            written: self.head,
            has_lost: self.tail > 0,
            overwrites: end - self.tail > RING_BYTES,
        }
    }

    /// The number of bytes of the records it holds and of their chunks.
    pub(crate) const fn buffered_bytes(&self) -> u64 {
        self.head - self.tail
    }

    /// The memory file, to be passed to [`Journal::with_memory`](crate::Journal::with_memory).
    #[must_use]
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    fn append_chunk(&mut self, at_ns: i64, stream: StreamName, piece: &[u8]) -> io::Result<()> {
        let (record, after) = self.progress.next_record(at_ns, stream, piece);
        let raw = record.encode(piece);
        let end = self.head + (raw.len() + piece.len()) as u64;
        self.evict_oldest(end)?;
        self.write_ring(self.head, &raw)?;
        self.write_ring(self.head + raw.len() as u64, piece)?;
        self.file
            .write_all_at(&state_header(end, after.counters).encode(), STATE_AT)?;
        self.file.write_all_at(&end.to_le_bytes(), HEAD_AT)?;
        self.head = end;
        self.progress = after;
        Ok(())
    }

    /// Drops the oldest records until `end` fits.
    fn evict_oldest(&mut self, end: u64) -> io::Result<()> {
        let before = self.tail;
        while end - self.tail > RING_BYTES && self.tail < self.head {
            let mut raw = [0; RECORD_BYTES];
            self.read_ring(self.tail, &mut raw)?;
            let Some(record) = IndexRecord::decode(&raw) else {
                return Err(io::ErrorKind::InvalidData.into());
            };
            self.tail += RECORD_BYTES as u64 + u64::from(record.len);
            self.oldest = record.end();
        }
        if self.tail != before {
            self.file.write_all_at(&self.tail.to_le_bytes(), TAIL_AT)?;
        }
        Ok(())
    }

    fn write_ring(&self, position: u64, bytes: &[u8]) -> io::Result<()> {
        let at = position % RING_BYTES;
        let first =
            usize::try_from(RING_BYTES - at).map_or(bytes.len(), |room| room.min(bytes.len()));
        self.file.write_all_at(&bytes[..first], HEADER_BYTES + at)?;
        self.file.write_all_at(&bytes[first..], HEADER_BYTES)
    }

    fn read_ring(&self, position: u64, bytes: &mut [u8]) -> io::Result<()> {
        let at = position % RING_BYTES;
        let first =
            usize::try_from(RING_BYTES - at).map_or(bytes.len(), |room| room.min(bytes.len()));
        let (one, two) = bytes.split_at_mut(first);
        self.file.read_exact_at(one, HEADER_BYTES + at)?;
        self.file.read_exact_at(two, HEADER_BYTES)
    }
}

fn append_error(error: io::Error) -> WriteError {
    WriteError::io("append to", FILE, error)
}

/// The memory segment of one execution, shared by all its readers: journals that were opened
/// earlier read one that is put in later.
#[derive(Debug, Clone, Default)]
pub struct MemorySlot(Arc<RwLock<Option<Arc<OwnedFd>>>>);

impl MemorySlot {
    /// Puts a memory segment in, and replaces an earlier one.
    pub fn set(&self, memory: OwnedFd) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(memory));
    }

    /// Removes the memory segment: its content is on disk, or lost.
    pub fn clear(&self) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// The memory segment, where there is one.
    #[must_use]
    pub fn get(&self) -> Option<Arc<OwnedFd>> {
        self.0
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

/// The content of a memory segment at one instant.
#[derive(Debug)]
pub(crate) struct RingSnapshot {
    records: Vec<RawRecord>,
    bytes: Vec<u8>,
    base: u64,
    end: u64,
    /// The stream counters at the end, where they are known.
    counters_at_end: Option<StreamCounters>,
}

impl RingSnapshot {
    /// Copies the ring; none where it holds nothing valid.
    pub(crate) fn read(memory: &OwnedFd) -> io::Result<Option<Self>> {
        let file = File::from(memory.try_clone()?);
        let Some((_, marked_head)) = read_bounds(&file)? else {
            return Ok(None);
        };
        // The head that the state names: everything before it is written and counted there.
        let state = read_state(&file)?;
        let head = state.as_ref().map_or(marked_head, |state| state.base);
        let mut ring = vec![0; usize::try_from(RING_BYTES).unwrap_or(0)];
        let filled = files::read_at(&file, &mut ring, HEADER_BYTES)?;
        let Some((tail, _)) = read_bounds(&file)?.filter(|_| filled == ring.len()) else {
            return Ok(None);
        };
        // What was overwritten during the copy is before the tail as it is now.
        let tallies = state.map(|state| state.counters);
        Ok(Self::parse(&ring, (tail, head), tallies))
    }

    /// Parses the valid records between tail and head; `counters_at_head` has the counters at the head.
    fn parse(
        ring: &[u8],
        (tail, head): (u64, u64),
        counters_at_head: Option<StreamCounters>,
    ) -> Option<Self> {
        let mut records = Vec::new();
        let mut bytes = Vec::new();
        let mut decoded: Vec<IndexRecord> = Vec::new();
        let mut position = tail;
        while position < head && head - position <= RING_BYTES {
            let raw = read_wrapped(ring, position, RECORD_BYTES);
            let Some((raw, record)) = RawRecord::try_from(raw.as_slice())
                .ok()
                .and_then(|raw| IndexRecord::decode(&raw).map(|record| (raw, record)))
            else {
                break;
            };
            let chunk = read_wrapped(ring, position + RECORD_BYTES as u64, record.len as usize);
            let follows = decoded
                .last()
                .is_none_or(|last| last.end() == record.offset);
            if !follows || !IndexRecord::is_intact(&raw, &chunk) {
                break;
            }
            records.push(raw);
            decoded.push(record);
            bytes.extend_from_slice(&chunk);
            position += (RECORD_BYTES + chunk.len()) as u64;
        }
        let (first, last) = (decoded.first()?, decoded.last()?);
        Some(Self {
            base: first.offset,
            end: last.end(),
            counters_at_end: counters_at_head.filter(|_| position == head),
            records,
            bytes,
        })
    }

    pub(crate) const fn base(&self) -> u64 {
        self.base
    }

    pub(crate) const fn end(&self) -> u64 {
        self.end
    }

    /// The stream counters before the first record. Where those at the end are unknown, the records
    /// give the number of lines; the number of bytes is unknown.
    pub(crate) fn tallies(&self) -> StreamCounters {
        let mut tallies = self.counters_at_end.unwrap_or_default();
        for record in self.records.iter().rev().filter_map(IndexRecord::decode) {
            let tally = &mut tallies[usize::from(stream_code(record.stream))];
            *tally = StreamCounter {
                bytes: tally.bytes.saturating_sub(u64::from(record.len)),
                newlines: record.line,
                open: !record.begins_line,
            };
        }
        tallies
    }

    /// Without the records that end at or before `offset`; none where no other is left.
    pub(crate) fn without_before(mut self, offset: u64) -> Option<Self> {
        let ends_before =
            |raw: &RawRecord| IndexRecord::decode(raw).is_some_and(|record| record.end() <= offset);
        let dropped = self
            .records
            .iter()
            .take_while(|raw| ends_before(raw))
            .count();
        let first = self.records.get(dropped).and_then(IndexRecord::decode)?;
        self.records.drain(..dropped);
        let bytes = usize::try_from(first.offset - self.base).unwrap_or(self.bytes.len());
        self.bytes.drain(..bytes);
        self.base = first.offset;
        Some(self)
    }

    pub(crate) fn records(&self) -> &[RawRecord] {
        &self.records
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

const fn state_header(head: u64, tallies: StreamCounters) -> IndexHeader {
    IndexHeader {
        number: 0,
        base: head,
        counters: tallies,
    }
}

/// Reads a head and the stream counters there; none in a file of an older writer.
fn read_state(file: &File) -> io::Result<Option<IndexHeader>> {
    let mut raw = [0; index::HEADER_BYTES];
    for _ in 0..STATE_READS {
        if files::read_at(file, &mut raw, STATE_AT)? < raw.len() {
            return Ok(None);
        }
        if let Ok(state) = IndexHeader::decode(&raw) {
            return Ok(Some(state));
        }
    }
    Ok(None)
}

/// Reads the tail and the head, if this is a memory segment.
fn read_bounds(file: &File) -> io::Result<Option<(u64, u64)>> {
    let mut header = [0; HEADER_LEN];
    let is_complete = files::read_at(file, &mut header, 0)? == HEADER_LEN;
    if !is_complete || header[..7] != MAGIC || header[7] != VERSION {
        return Ok(None);
    }
    let [.., tail, head] =
        [0, 8, 16, 24].map(|at| header[at..at + 8].try_into().map_or(0, u64::from_le_bytes));
    Ok(Some((tail, head)))
}

/// Copies a part of the ring, which may wrap around, into contiguous memory.
fn read_wrapped(ring: &[u8], position: u64, len: usize) -> Vec<u8> {
    let at = usize::try_from(position % RING_BYTES).unwrap_or(0);
    let first = len.min(ring.len() - at);
    let mut bytes = ring[at..at + first].to_vec();
    bytes.extend_from_slice(&ring[..(len - first).min(ring.len())]);
    bytes
}
