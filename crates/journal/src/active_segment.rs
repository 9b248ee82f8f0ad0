//! The segment that is being written: a pair of files, appended to together.

use std::fs::File;
use std::io;
use std::os::fd::BorrowedFd;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::error::WriteError;
use crate::files;

/// The pair of files being appended to.
#[derive(Debug)]
pub(crate) struct ActiveSegment {
    pub(crate) segment: File,
    pub(crate) index: File,
    pub(crate) number: u32,
    pub(crate) base: u64,
    pub(crate) index_bytes: u64,
}

impl ActiveSegment {
    /// Creates the pair of files numbered `number` with the header of the index and the first
    /// chunk.
    pub(crate) fn create(
        dir: BorrowedFd<'_>,
        number: u32,
        index: &[u8],
        chunk: &[u8],
        base: u64,
    ) -> Result<Self, WriteError> {
        let mut open = Self {
            segment: create(dir, number, files::SEGMENT)?,
            index: create(dir, number, files::INDEX)?,
            number,
            base,
            index_bytes: 0,
        };
        open.append(index, 0, chunk)?;
        Ok(open)
    }

    /// Appends to the segment before the index, each in one write; restores both if that fails.
    pub(crate) fn append(
        &mut self,
        index: &[u8],
        segment_bytes: u64,
        chunk: &[u8],
    ) -> Result<(), WriteError> {
        if let Err(error) = files::write(&self.segment, chunk) {
            self.cut(segment_bytes);
            return Err(self.append_error(files::SEGMENT, error));
        }
        if let Err(error) = files::write(&self.index, index) {
            self.cut(segment_bytes);
            return Err(self.append_error(files::INDEX, error));
        }
        self.index_bytes += index.len() as u64;
        Ok(())
    }

    /// Cuts what a failed write left. If even that fails, recovery will do it: the index determines
    /// how much of the segment is valid.
    fn cut(&self, segment_bytes: u64) {
        let index = self.index.set_len(self.index_bytes);
        let segment = self.segment.set_len(segment_bytes);
        drop((index, segment));
    }

    fn append_error(&self, suffix: &str, error: io::Error) -> WriteError {
        WriteError::io(
            "append to",
            files::segment_file_name(self.number, suffix),
            error,
        )
    }
}

/// Removes the files of a new segment; returns whether nothing of it is left.
pub(crate) fn discard(dir: BorrowedFd<'_>, number: u32) -> bool {
    // The index first: without one it is not a segment.
    [files::INDEX, files::SEGMENT].map(|suffix| files::remove(dir, number, suffix).is_ok())
        == [true; 2]
}

/// Creates a file exclusively, or uses a prepared empty one.
pub(crate) fn create(dir: BorrowedFd<'_>, number: u32, suffix: &str) -> Result<File, WriteError> {
    let mut name = files::NameBuffer::new();
    let path = name.write(number, suffix);
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::APPEND | OFlags::CLOEXEC;
    let opened = rustix::fs::openat(dir, path, flags, Mode::from_raw_mode(0o600));
    opened
        .and_then(|file| match rustix::fs::fstat(&file)?.st_size {
            0 => Ok(File::from(file)),
            _ => Err(Errno::EXIST),
        })
        .map_err(|error| WriteError::io("create", files::segment_file_name(number, suffix), error))
}
