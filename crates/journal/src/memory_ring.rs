//! The memory segment: a ring buffer with the newest output while the disk is full.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use ostler_model::StreamName;
use parking_lot::RwLock;
use rustix::fs::MemfdFlags;

use crate::disk_checks::RingFill;
use crate::error::WriteError;
use crate::index::{IndexRecord, RECORD_BYTES};
use crate::ring_snapshot::{
    HEAD_AT, HEADER_BYTES, HEADER_LEN, MAGIC, RING_BYTES, RingSnapshot, STATE_AT, TAIL_AT, VERSION,
    state_header,
};
use crate::write_progress::WriteProgress;
use crate::writer::OutputWriter;

pub use crate::ring_snapshot::MEMORY_BYTES;

/// The most bytes that one record of the ring covers.
const RING_CHUNK_BYTES: usize = 64 * 1024;

const FILE: &str = "the memory segment";

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
/// earlier can read a segment that is stored later.
#[derive(Debug, Clone, Default)]
pub struct MemorySlot(Arc<RwLock<Option<Arc<OwnedFd>>>>);

impl MemorySlot {
    /// Puts a memory segment in, and replaces an earlier one.
    pub fn set(&self, memory: OwnedFd) {
        *self.0.write() = Some(Arc::new(memory));
    }

    /// Removes the memory segment: its content is on disk, or lost.
    pub fn clear(&self) {
        *self.0.write() = None;
    }

    /// The memory segment, where there is one.
    #[must_use]
    pub fn get(&self) -> Option<Arc<OwnedFd>> {
        self.0.read().clone()
    }
}
