//! The return from memory to disk.
//!
//! The content of a memory segment becomes one segment on disk. Its index is renamed to its final
//! name when it is complete: a reader finds all of it in memory or all of it on disk, never a part.

use std::fs::File;
use std::os::fd::BorrowedFd;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::active_segment::{self, ActiveSegment};
use crate::error::WriteError;
use crate::files::{self, TruncationPoint};
use crate::index::{HEADER_BYTES, IndexHeader, RECORD_BYTES};
use crate::memory_ring::MemorySegment;
use crate::query::Gap;
use crate::ring_snapshot::RingSnapshot;
use crate::write_progress::WriteProgress;
use crate::writer::OutputWriter;

/// Bytes of disk space that stay free when output returns to disk.
const RESERVE_BYTES: u64 = 128 * 1024;

/// Output that no disk will ever hold, in the order of its offsets.
pub(crate) type MissingRanges = Vec<Gap>;

impl OutputWriter {
    /// Writes what `memory_ring` holds before `end` to disk and continues there; returns the gaps.
    ///
    /// # Errors
    /// When the disk refuses; nothing has changed then.
    pub(crate) fn restore(
        &mut self,
        memory: Option<&MemorySegment>,
        end: u64,
    ) -> Result<MissingRanges, WriteError> {
        let floor = files::read_floor(self.dir())
            .map_err(|error| WriteError::io("read", files::FLOOR, error))?;
        let ring = match memory {
            Some(memory) => memory.snapshot()?,
            None => None,
        };
        let from = self.progress();
        if let Some(ring) = &ring {
            self.check_free_space(ring)?;
        }
        // Output that was cleared meanwhile is not written any more.
        let ring = ring.and_then(|held| held.without_before(floor.offset));
        let (mut progress, open) = match &ring {
            Some(ring) => {
                let number = from.next_number + u32::from(ring.base() > from.end);
                let open = write_segment(self.dir(), number, ring)?;
                let after = WriteProgress {
                    next_number: number + 1,
                    end: ring.end(),
                    ..from
                };
                (after, Some(open))
            }
            None => (from, None),
        };
        if let Some(memory) = memory {
            progress.at_ns = memory.progress().at_ns;
            progress.counters = memory.progress().counters;
        }
        let leaves_gap = end > progress.end;
        let missing = missing_ranges(from.end, ring.as_ref(), end, floor);
        // A segment number is left out, so that the missing bytes read as a gap.
        progress.next_number += u32::from(leaves_gap);
        progress.end = end;
        self.resume_at(progress, open.filter(|_| !leaves_gap));
        Ok(missing)
    }
}

impl OutputWriter {
    /// Where a disk reports too little space, nothing is tried: the rest is for the exit record,
    /// and for the user who frees space.
    fn check_free_space(&self, ring: &RingSnapshot) -> Result<(), WriteError> {
        let needed = ring.bytes().len() + ring.records().len() * RECORD_BYTES;
        match self.free_bytes() {
            Ok(free) if free < needed as u64 + RESERVE_BYTES => Err(WriteError::io(
                "write memory back to",
                "the disk",
                Errno::NOSPC,
            )),
            // Some file systems cannot report it; they refuse what does not fit.
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// Whether the disk reports that this many bytes fit.
    pub(crate) fn reports_room(&self, bytes: u64) -> bool {
        #[cfg(test)]
        if let Some(room) = crate::test_disk::claimed_room() {
            return room >= bytes;
        }
        self.free_bytes()
            .is_ok_and(|free| free >= bytes.saturating_add(RESERVE_BYTES))
    }

    fn free_bytes(&self) -> Result<u64, Errno> {
        let disk = rustix::fs::fstatvfs(self.dir())?;
        Ok(disk.f_bavail.saturating_mul(disk.f_frsize))
    }
}

/// The ranges between `without_before` and `end` that are neither on disk nor held; cleared output is not
/// missing.
fn missing_ranges(
    from: u64,
    ring: Option<&RingSnapshot>,
    end: u64,
    floor: TruncationPoint,
) -> MissingRanges {
    let gaps = match ring {
        Some(ring) => [(from, ring.base()), (ring.end(), end)],
        None => [(from, end), (end, end)],
    };
    let gaps = gaps.into_iter().map(|(from, to)| Gap {
        from: from.max(floor.offset),
        to,
    });
    gaps.filter(|gap| gap.from < gap.to).collect()
}

/// Writes one segment as a whole, or nothing.
fn write_segment(
    dir: BorrowedFd<'_>,
    number: u32,
    ring: &RingSnapshot,
) -> Result<ActiveSegment, WriteError> {
    let written = write_files(dir, number, ring);
    if written
        .as_ref()
        .is_err_and(|error| !error.is_already_exists())
    {
        // Without an index, a file that cannot be removed is not a segment.
        drop(files::remove(dir, number, files::NEW_INDEX));
        drop(files::remove(dir, number, files::SEGMENT));
    }
    written
}

fn write_files(
    dir: BorrowedFd<'_>,
    number: u32,
    ring: &RingSnapshot,
) -> Result<ActiveSegment, WriteError> {
    let header = IndexHeader {
        number,
        base: ring.base(),
        counters: ring.tallies(),
    };
    let mut index = Vec::with_capacity(HEADER_BYTES + ring.records().len() * RECORD_BYTES);
    index.extend_from_slice(&header.encode());
    index.extend_from_slice(ring.records().as_flattened());
    let segment_file = active_segment::create(dir, number, files::SEGMENT)?;
    write(&segment_file, ring.bytes(), number, files::SEGMENT)?;
    let index_file = create_new_index(dir, number)?;
    write(&index_file, &index, number, files::NEW_INDEX)?;
    files::rename(dir, number, files::NEW_INDEX, files::INDEX).map_err(|error| {
        WriteError::io(
            "rename",
            files::segment_file_name(number, files::NEW_INDEX),
            error,
        )
    })?;
    Ok(ActiveSegment {
        segment: segment_file,
        index: index_file,
        number,
        base: ring.base(),
        index_bytes: index.len() as u64,
    })
}

fn write(file: &File, bytes: &[u8], number: u32, suffix: &str) -> Result<(), WriteError> {
    files::write(file, bytes).map_err(|error| {
        WriteError::io("append to", files::segment_file_name(number, suffix), error)
    })
}

/// No reader opens a file of this name: what an earlier attempt left is overwritten.
fn create_new_index(dir: BorrowedFd<'_>, number: u32) -> Result<File, WriteError> {
    let mut name = files::NameBuffer::new();
    let path = name.write(number, files::NEW_INDEX);
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::APPEND | OFlags::CLOEXEC;
    let opened = rustix::fs::openat(dir, path, flags, Mode::from_raw_mode(0o600));
    opened.map(File::from).map_err(|error| {
        WriteError::io(
            "create",
            files::segment_file_name(number, files::NEW_INDEX),
            error,
        )
    })
}
