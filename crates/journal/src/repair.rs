//! Recovery of a journal before a later attempt appends to it: the torn end is cut.

use std::fs::File;
use std::os::fd::BorrowedFd;

use rustix::fs::OFlags;

use crate::active_segment::ActiveSegment;
use crate::error::WriteError;
use crate::files::{self, SegmentEntry, TruncationPoint};
use crate::index::{HEADER_BYTES, RECORD_BYTES};
use crate::reach;
use crate::segment::{OutputSegment, SegmentError};
use crate::snapshot::counters_in_segment;
use crate::write_progress::WriteProgress;

/// Cuts the end of the last segment that fails its checksums, removes invalid segments, and
/// returns where to continue: at the valid end, or at `at_least` after a gap.
pub(crate) fn repair(
    dir: BorrowedFd<'_>,
    at_least: u64,
) -> Result<(WriteProgress, Option<ActiveSegment>), WriteError> {
    let failed = |error| WriteError::io("list", "the execution's directory", error);
    let mut listing = files::list(dir).map_err(failed)?;
    let floor = files::read_floor(dir).map_err(failed)?;
    let at_least = if listing.has_reach {
        at_least.max(reach::read(dir))
    } else {
        at_least
    };
    while let Some(entry) = listing.segments.pop() {
        match open_valid(dir, entry, floor)? {
            Some(segment) if segment.count > 0 || listing.segments.is_empty() => {
                let (progress, open) = resume(dir, &segment, entry, floor)?;
                return Ok(advance_to(progress, open, at_least.max(floor.offset)));
            }
            Some(_) | None => discard(dir, entry)?,
        }
    }
    Ok((
        WriteProgress {
            end: floor.offset.max(at_least),
            counters: floor.tallies,
            ..WriteProgress::default()
        },
        None,
    ))
}

/// Continues no earlier than `offset`: bytes that were only in memory, or that were cleared, keep
/// their offsets. A segment number is left out, so that they read as a gap.
fn advance_to(
    progress: WriteProgress,
    open: Option<ActiveSegment>,
    offset: u64,
) -> (WriteProgress, Option<ActiveSegment>) {
    if progress.end >= offset {
        return (progress, open);
    }
    let advanced = WriteProgress {
        next_number: progress.next_number + 1,
        end: offset,
        ..progress
    };
    (advanced, None)
}

/// Opens the segment cut after its last intact record; none where its index is invalid.
fn open_valid(
    dir: BorrowedFd<'_>,
    entry: SegmentEntry,
    floor: TruncationPoint,
) -> Result<Option<OutputSegment>, WriteError> {
    if !entry.has_index {
        return Ok(None);
    }
    let result = OutputSegment::open(dir, entry).and_then(|mut segment| {
        segment.cut_after_last_intact(dir, floor.offset)?;
        Ok(segment)
    });
    match result {
        Ok(segment) => Ok(Some(segment)),
        Err(SegmentError::Damaged | SegmentError::Stale) => Ok(None),
        Err(SegmentError::Read(error)) => Err(error.into()),
    }
}

/// Removes the files of an invalid segment, so that its number is free again.
fn discard(dir: BorrowedFd<'_>, entry: SegmentEntry) -> Result<(), WriteError> {
    let suffixes = [
        files::INDEX,
        files::NEW_INDEX,
        files::SEGMENT,
        files::COMPRESSED,
    ];
    for suffix in suffixes {
        files::remove(dir, entry.number, suffix).map_err(|error| {
            WriteError::io(
                "remove",
                files::segment_file_name(entry.number, suffix),
                error,
            )
        })?;
    }
    Ok(())
}

fn resume(
    dir: BorrowedFd<'_>,
    segment: &OutputSegment,
    entry: SegmentEntry,
    floor: TruncationPoint,
) -> Result<(WriteProgress, Option<ActiveSegment>), WriteError> {
    let progress = progress(dir, segment, floor)?;
    if !entry.has_segment {
        // Compressed, so sealed: the next segment continues.
        return Ok((progress, None));
    }
    let open = |suffix| append_to(dir, entry.number, suffix);
    let open = ActiveSegment {
        segment: open(files::SEGMENT)?,
        index: open(files::INDEX)?,
        number: entry.number,
        base: segment.base,
        index_bytes: HEADER_BYTES as u64 + segment.count * RECORD_BYTES as u64,
    };
    // The index first: a segment longer than its index has only a torn tail.
    truncate(&open.index, open.index_bytes, entry.number, files::INDEX)?;
    truncate(
        &open.segment,
        progress.end - segment.base,
        entry.number,
        files::SEGMENT,
    )?;
    Ok((progress, Some(open)))
}

/// The progress of the journal at the end of its last segment.
fn progress(
    dir: BorrowedFd<'_>,
    segment: &OutputSegment,
    floor: TruncationPoint,
) -> Result<WriteProgress, WriteError> {
    let to_write_error = |trouble| match trouble {
        SegmentError::Read(error) => WriteError::from(error),
        SegmentError::Stale | SegmentError::Damaged => WriteError::Format {
            file: files::segment_file_name(segment.number, files::INDEX),
        },
    };
    let end = segment.end().map_err(to_write_error)?;
    let newest = match segment.count.checked_sub(1) {
        Some(last) => segment.record(last).map_err(to_write_error)?,
        None => None,
    };
    Ok(WriteProgress {
        next_number: segment.number + 1,
        end,
        at_ns: newest.map_or(0, |record| record.at_ns),
        counters: counters_in_segment(dir, segment, end, floor).map_err(to_write_error)?,
    })
}

fn append_to(dir: BorrowedFd<'_>, number: u32, suffix: &str) -> Result<File, WriteError> {
    let failed = |error| WriteError::io("open", files::segment_file_name(number, suffix), error);
    let flags = OFlags::WRONLY | OFlags::APPEND;
    let file = files::open(dir, number, suffix, flags).map_err(failed)?;
    file.ok_or_else(|| failed(std::io::ErrorKind::NotFound.into()))
}

fn truncate(file: &File, bytes: u64, number: u32, suffix: &str) -> Result<(), WriteError> {
    let failed = |error| WriteError::io("cut", files::segment_file_name(number, suffix), error);
    if file.metadata().map_err(failed)?.len() == bytes {
        return Ok(());
    }
    file.set_len(bytes).map_err(failed)
}
