//! Recovery of a journal before a later attempt appends to it: the torn tail is cut.

use std::fs::File;
use std::os::fd::BorrowedFd;

use rustix::fs::OFlags;

use crate::error::WriteError;
use crate::files::{self, SegmentEntry, TruncationPoint};
use crate::index::{HEADER_BYTES, RECORD_BYTES};
use crate::reach;
use crate::segment::{OutputSegment, SegmentError};
use crate::snapshot::tallies_of;
use crate::writer::{OpenSegment, WriteProgress};

/// Cuts the part of the last segment that fails its checksums, removes invalid segments, and
/// returns where to continue: at the valid end, or at `at_least` after a gap.
pub(crate) fn repair(
    dir: BorrowedFd<'_>,
    at_least: u64,
) -> Result<(WriteProgress, Option<OpenSegment>), WriteError> {
    let failed = |error| WriteError::io("list", "the execution's directory", error);
    let mut listing = files::list(dir).map_err(failed)?;
    let floor = files::read_floor(dir).map_err(failed)?;
    let at_least = if listing.has_reach {
        at_least.max(reach::read(dir))
    } else {
        at_least
    };
    while let Some(listed) = listing.segments.pop() {
        match opened(dir, listed, floor)? {
            Some(segment) if segment.count > 0 || listing.segments.is_empty() => {
                let (progress, open) = resume(dir, &segment, listed, floor)?;
                return Ok(behind(progress, open, at_least.max(floor.offset)));
            }
            Some(_) | None => discard(dir, listed)?,
        }
    }
    Ok((
        WriteProgress {
            end: floor.offset.max(at_least),
            tallies: floor.tallies,
            ..WriteProgress::default()
        },
        None,
    ))
}

/// Continues no earlier than `offset`: bytes that were only in memory, or that were cleared, keep
/// their offsets. A segment number is left out, so that they read as a gap.
fn behind(
    progress: WriteProgress,
    open: Option<OpenSegment>,
    offset: u64,
) -> (WriteProgress, Option<OpenSegment>) {
    if progress.end >= offset {
        return (progress, open);
    }
    let apart = WriteProgress {
        next_number: progress.next_number + 1,
        end: offset,
        ..progress
    };
    (apart, None)
}

/// Opens the segment cut at its first invalid record; none where its index is invalid.
fn opened(
    dir: BorrowedFd<'_>,
    listed: SegmentEntry,
    floor: TruncationPoint,
) -> Result<Option<OutputSegment>, WriteError> {
    if !listed.has_index {
        return Ok(None);
    }
    let opened = OutputSegment::open(dir, listed).and_then(|mut segment| {
        segment.verify(dir, floor.offset)?;
        Ok(segment)
    });
    match opened {
        Ok(segment) => Ok(Some(segment)),
        Err(SegmentError::Damaged | SegmentError::Stale) => Ok(None),
        Err(SegmentError::Read(error)) => Err(error.into()),
    }
}

/// Removes the files of an invalid segment, so that its number is free again.
fn discard(dir: BorrowedFd<'_>, listed: SegmentEntry) -> Result<(), WriteError> {
    let suffixes = [
        files::INDEX,
        files::NEW_INDEX,
        files::SEGMENT,
        files::COMPRESSED,
    ];
    for suffix in suffixes {
        files::remove(dir, listed.number, suffix)
            .map_err(|error| WriteError::io("remove", files::name(listed.number, suffix), error))?;
    }
    Ok(())
}

fn resume(
    dir: BorrowedFd<'_>,
    segment: &OutputSegment,
    listed: SegmentEntry,
    floor: TruncationPoint,
) -> Result<(WriteProgress, Option<OpenSegment>), WriteError> {
    let progress = progress(dir, segment, floor)?;
    if !listed.has_segment {
        // Compressed, so sealed: the next segment continues.
        return Ok((progress, None));
    }
    let open = |suffix| append_to(dir, listed.number, suffix);
    let open = OpenSegment {
        segment: open(files::SEGMENT)?,
        index: open(files::INDEX)?,
        number: listed.number,
        base: segment.base,
        index_bytes: HEADER_BYTES as u64 + segment.count * RECORD_BYTES as u64,
    };
    // The index first: a segment longer than its index has only a torn tail.
    cut(&open.index, open.index_bytes, listed.number, files::INDEX)?;
    cut(
        &open.segment,
        progress.end - segment.base,
        listed.number,
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
    let told = |trouble| match trouble {
        SegmentError::Read(error) => WriteError::from(error),
        SegmentError::Stale | SegmentError::Damaged => WriteError::Format {
            file: files::name(segment.number, files::INDEX),
        },
    };
    let end = segment.end().map_err(told)?;
    let newest = match segment.count.checked_sub(1) {
        Some(last) => segment.record(last).map_err(told)?,
        None => None,
    };
    Ok(WriteProgress {
        next_number: segment.number + 1,
        end,
        at_ns: newest.map_or(0, |record| record.at_ns),
        tallies: tallies_of(dir, segment, end, floor).map_err(told)?,
    })
}

fn append_to(dir: BorrowedFd<'_>, number: u32, suffix: &str) -> Result<File, WriteError> {
    let failed = |error| WriteError::io("open", files::name(number, suffix), error);
    let flags = OFlags::WRONLY | OFlags::APPEND;
    let file = files::open(dir, number, suffix, flags).map_err(failed)?;
    file.ok_or_else(|| failed(std::io::ErrorKind::NotFound.into()))
}

fn cut(file: &File, bytes: u64, number: u32, suffix: &str) -> Result<(), WriteError> {
    let failed = |error| WriteError::io("cut", files::name(number, suffix), error);
    if file.metadata().map_err(failed)?.len() == bytes {
        return Ok(());
    }
    file.set_len(bytes).map_err(failed)
}
