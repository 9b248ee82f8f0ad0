//! The output writer: one write to the segment, then one to its index, for each chunk.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use ostler_model::StreamName;

use crate::active_segment::{self, ActiveSegment};
use crate::error::WriteError;
use crate::files;
use crate::index::{CHUNK_BYTES, HEADER_BYTES, IndexHeader, IndexRecord, RECORD_BYTES};
use crate::repair;
use crate::write_progress::WriteProgress;

/// The default size in bytes at which a segment is closed and the next one begins.
pub const SEGMENT_BYTES: u64 = 64 * 1024 * 1024;
/// The smallest segment size; small ones make sense in tests only.
pub const SEGMENT_MIN_BYTES: u64 = 16;
/// The largest segment size.
pub const SEGMENT_MAX_BYTES: u64 = 1024 * 1024 * 1024;

/// The limits at which segments rotate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentLimits {
    /// The size in bytes at which the next segment begins; clamped to [`SEGMENT_MIN_BYTES`] and
    /// [`SEGMENT_MAX_BYTES`].
    pub segment_bytes: u64,
}

impl Default for SegmentLimits {
    fn default() -> Self {
        Self {
            segment_bytes: SEGMENT_BYTES,
        }
    }
}

/// Appends the output of one execution. One writer at a time; readers need no lock.
#[derive(Debug)]
pub struct OutputWriter {
    dir: OwnedFd,
    limits: SegmentLimits,
    open: Option<ActiveSegment>,
    progress: WriteProgress,
}

impl OutputWriter {
    /// For a new execution. Creates nothing before the first append; the descriptor is duplicated.
    ///
    /// # Errors
    /// When the descriptor cannot be duplicated.
    pub fn create(dir: BorrowedFd<'_>, limits: SegmentLimits) -> Result<Self, WriteError> {
        Ok(Self {
            dir: duplicate(dir)?,
            limits: limits.clamped(),
            open: None,
            progress: WriteProgress::default(),
        })
    }

    /// Creates the first pair of files, empty: a writer made for the same directory later finds
    /// them, and readers ignore them until then.
    ///
    /// # Errors
    /// When the file system refuses.
    pub fn prepare(dir: BorrowedFd<'_>) -> Result<(), WriteError> {
        active_segment::create(dir, 0, files::SEGMENT)?;
        active_segment::create(dir, 0, files::INDEX).map(drop)
    }

    /// The names of the files that [`prepare`](Self::prepare) creates.
    #[must_use]
    pub fn prepared_files() -> [String; 2] {
        [
            files::segment_file_name(0, files::SEGMENT),
            files::segment_file_name(0, files::INDEX),
        ]
    }

    /// For a later attempt: finds the valid end, cuts a torn tail, continues.
    ///
    /// # Errors
    /// When the files cannot be read or cut.
    pub fn resume(dir: BorrowedFd<'_>, limits: SegmentLimits) -> Result<Self, WriteError> {
        Self::resume_after(dir, limits, 0)
    }

    /// As [`resume`](Self::resume), but at `at_least` or later: where an earlier attempt ended in
    /// memory because the disk was full, its bytes read as a gap.
    ///
    /// # Errors
    /// When the files cannot be read or cut.
    pub fn resume_after(
        dir: BorrowedFd<'_>,
        limits: SegmentLimits,
        at_least: u64,
    ) -> Result<Self, WriteError> {
        let (progress, open) = repair::repair(dir, at_least)?;
        Ok(Self {
            dir: duplicate(dir)?,
            limits: limits.clamped(),
            open,
            progress,
        })
    }

    /// Appends what was read from the command at once and returns the new end. Does not allocate.
    /// Times that go backward are stored as the newest time so far.
    ///
    /// # Errors
    /// When the file system refuses; the part of `bytes` that was not stored is cut, the files stay
    /// valid up to [`end`](Self::end), and the caller continues in a
    /// [`MemorySegment`](crate::MemorySegment).
    pub fn append(
        &mut self,
        at_ns: i64,
        stream: StreamName,
        bytes: &[u8],
    ) -> Result<u64, WriteError> {
        for chunk in bytes.chunks(CHUNK_BYTES) {
            self.append_chunk(at_ns, stream, chunk)?;
        }
        Ok(self.progress.end)
    }

    /// The number of bytes appended so far, in all attempts.
    #[must_use]
    pub const fn end(&self) -> u64 {
        self.progress.end
    }

    pub(crate) const fn progress(&self) -> WriteProgress {
        self.progress
    }

    pub(crate) fn dir(&self) -> BorrowedFd<'_> {
        self.dir.as_fd()
    }

    /// Continues at `progress`, in `open` or else in a new segment.
    pub(crate) fn resume_at(&mut self, progress: WriteProgress, open: Option<ActiveSegment>) {
        self.progress = progress;
        self.open = open;
    }

    /// Closes the files; the next append begins a segment.
    pub(crate) fn close_segment(&mut self) {
        self.open = None;
    }

    fn append_chunk(
        &mut self,
        at_ns: i64,
        stream: StreamName,
        chunk: &[u8],
    ) -> Result<(), WriteError> {
        let (record, after) = self.progress.next_record(at_ns, stream, chunk);
        let is_full = |open: &ActiveSegment| {
            record.end() - open.base > self.limits.segment_bytes && record.offset > open.base
        };
        if self.open.as_ref().is_none_or(is_full) {
            self.open = None;
            self.start_segment(&record, chunk)?;
        } else if let Some(open) = &mut self.open {
            open.append(&record.encode(chunk), record.offset - open.base, chunk)?;
        }
        self.progress = WriteProgress {
            next_number: self.progress.next_number,
            ..after
        };
        Ok(())
    }

    /// Creates the next pair of files with their first chunk.
    fn start_segment(&mut self, record: &IndexRecord, chunk: &[u8]) -> Result<(), WriteError> {
        let number = self.progress.next_number;
        let header = IndexHeader {
            number,
            base: record.offset,
            counters: self.progress.counters,
        };
        let mut first = [0; HEADER_BYTES + RECORD_BYTES];
        first[..HEADER_BYTES].copy_from_slice(&header.encode());
        first[HEADER_BYTES..].copy_from_slice(&record.encode(chunk));
        match ActiveSegment::create(self.dir.as_fd(), number, &first, chunk, record.offset) {
            Ok(open) => {
                self.progress.next_number = number + 1;
                self.open = Some(open);
                Ok(())
            }
            Err(error) => {
                // A number whose files cannot be removed, or belong to others, stays taken: readers
                // and recovery skip it.
                if error.is_already_exists() || !active_segment::discard(self.dir.as_fd(), number) {
                    self.progress.next_number = number + 1;
                }
                Err(error)
            }
        }
    }
}

impl SegmentLimits {
    fn clamped(self) -> Self {
        Self {
            segment_bytes: self
                .segment_bytes
                .clamp(SEGMENT_MIN_BYTES, SEGMENT_MAX_BYTES),
        }
    }
}

fn duplicate(dir: BorrowedFd<'_>) -> Result<OwnedFd, WriteError> {
    dir.try_clone_to_owned()
        .map_err(|error| WriteError::io("open", "the execution's directory", error))
}
