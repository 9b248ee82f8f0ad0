//! Clearing: what is below the truncation point of an execution's output is dropped.

use std::fs::File;
use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::fs::FileExt;

use rustix::fs::{FallocateFlags, OFlags};
use rustix::io::Errno;

use super::{DIRECTORY, discard, failed};
use crate::error::WriteError;
use crate::files::{self, NewFloor, SegmentEntry, TruncationPoint};
use crate::segment::OutputSegment;

/// Drops everything below the truncation point: whole segments where a newer one follows, and
/// the beginning of the last one.
pub(crate) fn clear_below(dir: BorrowedFd<'_>, floor: TruncationPoint) -> Result<(), WriteError> {
    let written = NewFloor::create(dir).and_then(|new| {
        new.write(floor)?;
        new.commit()
    });
    match written {
        Err(error) if is_full(&error) => clear_on_full_disk(dir, floor, error),
        written => {
            written.map_err(floor_failed)?;
            plan_clear(dir, floor)?.execute(dir)
        }
    }
}

/// The same where there is no room for a new file of the truncation point. Without that file, what
/// was dropped is reported as lost: it comes last only where nothing else is possible.
fn clear_on_full_disk(
    dir: BorrowedFd<'_>,
    floor: TruncationPoint,
    refused: io::Error,
) -> Result<(), WriteError> {
    let plan = plan_clear(dir, floor)?;
    if files::overwrite_floor(dir, floor).is_ok() {
        return plan.execute(dir);
    }
    let reserved = NewFloor::create(dir).ok();
    let makes_room = match &reserved {
        Some(_) => plan.frees_blocks(block_bytes(dir)),
        // An inode is missing, or the blocks for one.
        None => plan.removes_files() || has_few_blocks(dir),
    };
    if !makes_room {
        return Err(floor_failed(refused));
    }
    plan.execute(dir)?;
    let new = reserved.map_or_else(|| NewFloor::create(dir), Ok);
    new.and_then(|new| {
        new.write(floor)?;
        new.commit()
    })
    .map_err(floor_failed)
}

fn floor_failed(error: io::Error) -> WriteError {
    failed("write", files::FLOOR, error)
}

/// Whether the disk, or the user's share of it, is used up.
fn is_full(error: &io::Error) -> bool {
    let full = [Errno::NOSPC, Errno::DQUOT];
    Errno::from_io_error(error).is_some_and(|errno| full.contains(&errno))
}

/// The size of the blocks that files occupy, in bytes.
fn block_bytes(dir: BorrowedFd<'_>) -> u64 {
    const USUAL_BYTES: u64 = 4096;
    rustix::fs::fstatvfs(dir).map_or(USUAL_BYTES, |disk| disk.f_frsize)
}

/// Whether the file system has hardly any free blocks: some take the blocks of inodes from these.
fn has_few_blocks(dir: BorrowedFd<'_>) -> bool {
    const FEW_BYTES: u64 = 1024 * 1024;
    let disk = rustix::fs::fstatvfs(dir);
    disk.is_ok_and(|disk| disk.f_bavail.saturating_mul(disk.f_frsize) < FEW_BYTES)
}

/// What is dropped of the segments of one execution, newest first.
#[derive(Debug, Default, PartialEq, Eq)]
struct ClearPlan(Vec<ClearStep>);

#[derive(Debug, PartialEq, Eq)]
enum ClearStep {
    /// All files of the segment with this number.
    Discard(u32),
    /// The first bytes of a segment. The writer may have the file open, so it stays.
    Punch(SegmentEntry, u64),
}

fn plan_clear(dir: BorrowedFd<'_>, floor: TruncationPoint) -> Result<ClearPlan, WriteError> {
    let listing = files::list(dir).map_err(|error| failed("list", DIRECTORY, error))?;
    let with_base = listing.segments.iter().filter_map(|one| {
        let segment = OutputSegment::open(dir, *one).ok()?;
        Some((*one, segment.base))
    });
    Ok(ClearPlan::new(&with_base.collect::<Vec<_>>(), floor.offset))
}

impl ClearPlan {
    /// For segments with the offsets of their first bytes, in order.
    fn new(segments: &[(SegmentEntry, u64)], floor: u64) -> Self {
        let mut next_base = None;
        let mut steps = Vec::with_capacity(segments.len());
        for (entry, base) in segments.iter().rev() {
            match next_base.replace(*base) {
                Some(next) if next <= floor => steps.push(ClearStep::Discard(entry.number)),
                Some(_) | None if *base < floor => {
                    steps.push(ClearStep::Punch(*entry, floor - base));
                }
                Some(_) | None => {}
            }
        }
        Self(steps)
    }

    /// Whether at least one block is freed: a hole of less than that only loses output.
    fn frees_blocks(&self, block_bytes: u64) -> bool {
        let is_whole =
            |step: &ClearStep| matches!(step, ClearStep::Punch(_, bytes) if *bytes >= block_bytes);
        self.removes_files() || self.0.iter().any(is_whole)
    }

    /// Whether files are removed: this frees their inodes.
    fn removes_files(&self) -> bool {
        self.0.iter().any(|step| match step {
            ClearStep::Discard(_) => true,
            ClearStep::Punch(entry, _) => !entry.has_segment && entry.has_compressed,
        })
    }

    fn execute(&self, dir: BorrowedFd<'_>) -> Result<(), WriteError> {
        for step in &self.0 {
            match step {
                ClearStep::Discard(number) => discard(dir, *number)?,
                ClearStep::Punch(entry, bytes) => punch_hole(dir, *entry, *bytes)?,
            }
        }
        Ok(())
    }
}

/// Frees the first `bytes` of a segment on disk (fallocate(2)); a compressed one has no writer.
fn punch_hole(dir: BorrowedFd<'_>, entry: SegmentEntry, bytes: u64) -> Result<(), WriteError> {
    let name = files::segment_file_name(entry.number, files::SEGMENT);
    let file = files::open(dir, entry.number, files::SEGMENT, OFlags::WRONLY);
    let Some(file) = file.map_err(|error| failed("open", &name, error))? else {
        let removed = files::remove(dir, entry.number, files::COMPRESSED);
        return removed
            .map(drop)
            .map_err(|error| failed("remove", &name, error));
    };
    let size = file
        .metadata()
        .map_err(|error| failed("measure", &name, error))?
        .len();
    let bytes = bytes.min(size);
    if bytes == 0 {
        return Ok(());
    }
    let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    match rustix::fs::fallocate(&file, flags, 0, bytes) {
        Ok(()) => Ok(()),
        Err(Errno::OPNOTSUPP) => {
            overwrite(&file, bytes).map_err(|error| failed("clear", &name, error))
        }
        Err(error) => Err(failed("clear", &name, error)),
    }
}

/// Overwrites with zeros where the file system does not support holes.
fn overwrite(file: &File, bytes: u64) -> io::Result<()> {
    const STEP_BYTES: usize = 64 * 1024;
    let zeros = [0; STEP_BYTES];
    let mut at = 0;
    while at < bytes {
        let step = (bytes - at).min(STEP_BYTES as u64);
        let step = usize::try_from(step).unwrap_or(STEP_BYTES);
        file.write_all_at(&zeros[..step], at)?;
        at += step as u64;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(number: u32, has_segment: bool) -> SegmentEntry {
        SegmentEntry {
            number,
            has_index: true,
            has_segment,
            has_compressed: !has_segment,
        }
    }

    #[test]
    fn what_is_below_the_truncation_point_is_dropped() {
        let [first, second, last] = [entry(0, false), entry(1, true), entry(2, true)];
        let segments = [(first, 0), (second, 100), (last, 200)];
        let steps = |floor| ClearPlan::new(&segments, floor).0;
        assert_eq!(steps(0), []);
        assert_eq!(steps(50), [ClearStep::Punch(first, 50)]);
        assert_eq!(steps(100), [ClearStep::Discard(0)]);
        assert_eq!(
            steps(250),
            [
                ClearStep::Punch(last, 50),
                ClearStep::Discard(1),
                ClearStep::Discard(0)
            ]
        );
        for (segments, removes_files) in [
            (&segments[..], true),
            (&[(entry(0, false), 0)], true),
            (&[(entry(0, true), 0)], false),
        ] {
            let plan = ClearPlan::new(segments, 250);
            assert_eq!(plan.removes_files(), removes_files);
            assert!(plan.frees_blocks(250));
            assert_eq!(plan.frees_blocks(251), removes_files);
        }
    }
}
