//! The files of one segment on disk: its index, and its bytes where they are not compressed.

use std::fs::File;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::OnceLock;

use parking_lot::Mutex;
use rustix::fs::OFlags;

use crate::error::ReadError;
use crate::files;
use crate::index::{
    HEADER_BYTES, IndexHeader, IndexHeaderError, RECORD_BYTES, StreamCounters, VERSION,
};
use crate::tail::{RawRecord, SegmentTail};

/// The open files of one segment, and its end as it was read last.
#[derive(Debug)]
pub(super) struct SegmentFiles {
    pub(super) number: u32,
    pub(super) base: u64,
    pub(super) counters: StreamCounters,
    index: File,
    /// The file of its bytes, once it was read, unless it is compressed.
    raw: OnceLock<File>,
    /// Its end, once it was read again.
    pub(super) tail: Mutex<SegmentTail>,
}

impl SegmentFiles {
    /// Opens the index and reads its header.
    pub(super) fn open(dir: BorrowedFd<'_>, number: u32) -> Result<Self, SegmentError> {
        let failed = |error| {
            ReadError::io(
                "read",
                files::segment_file_name(number, files::INDEX),
                error,
            )
        };
        let index = files::open(dir, number, files::INDEX, OFlags::RDONLY).map_err(failed)?;
        let index = index.ok_or(SegmentError::Stale)?;
        let mut raw = [0; HEADER_BYTES];
        let filled = files::read_at(&index, &mut raw, 0).map_err(failed)?;
        let header = match IndexHeader::decode(&raw[..filled]) {
            Ok(header) if header.number == number => header,
            Ok(_) | Err(IndexHeaderError::Damaged) => return Err(SegmentError::Damaged),
            Err(IndexHeaderError::Version(found)) => {
                return Err(SegmentError::Read(ReadError::Version {
                    file: files::segment_file_name(number, files::INDEX),
                    found,
                    known: VERSION,
                }));
            }
        };
        Ok(Self {
            number,
            base: header.base,
            counters: header.counters,
            index,
            raw: OnceLock::new(),
            tail: Mutex::default(),
        })
    }

    /// The number of whole records in the index.
    pub(super) fn count(&self) -> Result<u64, SegmentError> {
        let read = self.index.metadata();
        let length = read.map_err(|error| self.failed(files::INDEX, error))?;
        let records = length.len().saturating_sub(HEADER_BYTES as u64);
        Ok(records / RECORD_BYTES as u64)
    }

    /// Replaces `buffer` with records of the index; fewer than `max_records` where it ends.
    pub(super) fn records(
        &self,
        first: u64,
        buffer: &mut Vec<RawRecord>,
        max_records: usize,
    ) -> Result<(), SegmentError> {
        self.read_records(first, buffer, max_records, files::read_at)
    }

    /// As [`SegmentFiles::records`] with one system call; the rest is there at the next one.
    pub(super) fn available_records(
        &self,
        first: u64,
        buffer: &mut Vec<RawRecord>,
        max_records: usize,
    ) -> Result<(), SegmentError> {
        self.read_records(first, buffer, max_records, files::read_once_at)
    }

    fn read_records(
        &self,
        first: u64,
        buffer: &mut Vec<RawRecord>,
        max_records: usize,
        read_at: fn(&File, &mut [u8], u64) -> io::Result<usize>,
    ) -> Result<(), SegmentError> {
        buffer.clear();
        buffer.resize(max_records, [0; RECORD_BYTES]);
        let at = HEADER_BYTES as u64 + first * RECORD_BYTES as u64;
        let filled = read_at(&self.index, buffer.as_flattened_mut(), at);
        let filled = filled.map_err(|error| self.failed(files::INDEX, error))?;
        buffer.truncate(filled / RECORD_BYTES);
        Ok(())
    }

    /// Replaces `buffer` with bytes; false where they are compressed, or gone.
    pub(super) fn bytes(
        &self,
        dir: BorrowedFd<'_>,
        from: u64,
        len: usize,
        buffer: &mut Vec<u8>,
    ) -> Result<bool, SegmentError> {
        let failed = |error| self.failed(files::SEGMENT, error);
        let file = match self.raw.get() {
            Some(file) => file,
            None => match files::open(dir, self.number, files::SEGMENT, OFlags::RDONLY) {
                Ok(Some(file)) => self.raw.get_or_init(|| file),
                Ok(None) => return Ok(false),
                Err(error) => return Err(failed(error)),
            },
        };
        // The old content is overwritten: a reused buffer needs no zeroing.
        buffer.resize(len, 0);
        let filled = files::read_at(file, buffer, from.saturating_sub(self.base));
        buffer.truncate(filled.map_err(failed)?);
        Ok(true)
    }

    fn failed(&self, suffix: &str, error: io::Error) -> SegmentError {
        SegmentError::Read(ReadError::io(
            "read",
            files::segment_file_name(self.number, suffix),
            error,
        ))
    }
}

/// Why a segment could not be opened or read.
#[derive(Debug)]
pub(crate) enum SegmentError {
    /// A file was removed since the directory was listed: the caller lists it again.
    Stale,
    /// The index has no valid header.
    Damaged,
    /// To be returned to the caller.
    Read(ReadError),
}

impl From<ReadError> for SegmentError {
    fn from(error: ReadError) -> Self {
        Self::Read(error)
    }
}
