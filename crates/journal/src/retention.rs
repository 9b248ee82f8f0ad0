//! Retention: pure plans of what to drop when there is too much, and their execution.

mod clear;

use std::fs::File;
use std::io::{self, BufWriter};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use ostler_model::{ExecutionId, Timestamp};
use rustix::fs::OFlags;

use crate::atomic_file::{AtomicFile, PRIVATE_MODE};
use crate::compress;
use crate::durability::Durability;
use crate::error::{ReadError, WriteError};
use crate::files;
use crate::query::TrimmedRange;
use crate::snapshot::with_snapshot;

pub(crate) use clear::clear_below;

pub use crate::snapshot::SegmentExtent;

const DIRECTORY: &str = "the execution's directory";

/// The default bytes kept from the beginning of an execution's output.
pub const HEAD_BYTES: u64 = 64 * 1024 * 1024;
/// The default bytes kept from the end of an execution's output.
pub const TAIL_BYTES: u64 = 8 * 1024 * 1024 * 1024;
/// The default size limit of a state directory in bytes.
pub const STATE_BYTES: u64 = 20 * 1024 * 1024 * 1024;
/// The default share of the disk that a state directory may use, in percent.
pub const STATE_DISK_PERCENT: u64 = 10;

/// How much output of one execution is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutputPolicy {
    /// Bytes kept from the beginning.
    pub head_bytes: u64,
    /// Bytes kept from the end.
    pub tail_bytes: u64,
}

/// The size limits of a state directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatePolicy {
    /// Bytes.
    pub max_bytes: u64,
    /// Files and directories.
    pub max_inodes: u64,
}

/// The disk usage of one execution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecutionDiskUsage {
    /// The execution.
    pub id: ExecutionId,
    /// Bytes that its directory occupies on disk.
    pub bytes: u64,
    /// Files and directories in it.
    pub inodes: u64,
    /// When it ended; none while it runs, and then it is never dropped.
    pub ended_at: Option<Timestamp>,
}

impl Default for OutputPolicy {
    fn default() -> Self {
        Self {
            head_bytes: HEAD_BYTES,
            tail_bytes: TAIL_BYTES,
        }
    }
}

/// The executions that must be dropped, oldest end first, so that the rest fits.
#[must_use]
pub fn plan(usages: &[ExecutionDiskUsage], policy: StatePolicy) -> Vec<ExecutionId> {
    let mut bytes: u64 = usages.iter().map(|one| one.bytes).sum();
    let mut inodes: u64 = usages.iter().map(|one| one.inodes).sum();
    let mut ended: Vec<(Timestamp, &ExecutionDiskUsage)> = usages
        .iter()
        .filter_map(|one| one.ended_at.map(|at| (at, one)))
        .collect();
    ended.sort_by_key(|(at, one)| (*at, one.id));
    let mut dropped = Vec::new();
    for (_, execution) in ended {
        if bytes <= policy.max_bytes && inodes <= policy.max_inodes {
            break;
        }
        bytes -= execution.bytes;
        inodes -= execution.inodes;
        dropped.push(execution.id);
    }
    dropped
}

/// The segments that are neither in the head nor in the tail; never the newest. `segments` are in
/// order.
#[must_use]
pub fn plan_output(segments: &[SegmentExtent], policy: OutputPolicy) -> Vec<SegmentExtent> {
    let Some((newest, older)) = segments.split_last() else {
        return Vec::new();
    };
    let tail = newest.to.saturating_sub(policy.tail_bytes);
    let is_excess = |one: &&SegmentExtent| one.from >= policy.head_bytes && one.to <= tail;
    older.iter().filter(is_excess).copied().collect()
}

/// The default policy on the disk that holds `state_dir`: the smaller of [`STATE_BYTES`] and
/// [`STATE_DISK_PERCENT`] of it, and the same share of its inodes.
///
/// # Errors
/// When the file system cannot be queried.
pub fn state_policy(state_dir: &Path) -> Result<StatePolicy, ReadError> {
    let disk = rustix::fs::statvfs(state_dir).map_err(|error| {
        ReadError::io("ask the disk of", state_dir.display().to_string(), error)
    })?;
    let share = |whole: u64| whole / 100 * STATE_DISK_PERCENT;
    // File systems without a fixed number of inodes report 0.
    let inodes = if disk.f_files == 0 {
        u64::MAX
    } else {
        share(disk.f_files)
    };
    Ok(StatePolicy {
        max_bytes: share(disk.f_blocks.saturating_mul(disk.f_frsize)).min(STATE_BYTES),
        max_inodes: inodes,
    })
}

/// The disk usage of one execution's directory: (bytes, inodes).
///
/// # Errors
/// When it cannot be listed.
pub fn measure(dir: &Path) -> Result<(u64, u64), ReadError> {
    const BLOCK_BYTES: u64 = 512;
    let failed = |error| ReadError::io("measure", dir.display().to_string(), error);
    let whole = dir.symlink_metadata().map_err(failed)?;
    let (mut bytes, mut inodes) = (whole.blocks() * BLOCK_BYTES, 1);
    for entry in dir.read_dir().map_err(failed)? {
        // A file that disappeared meanwhile occupies nothing.
        if let Ok(metadata) = entry.map_err(failed)?.metadata() {
            bytes += metadata.blocks() * BLOCK_BYTES;
            inodes += 1;
        }
    }
    Ok((bytes, inodes))
}

/// The range that [`trim`] would drop now.
///
/// # Errors
/// When segments cannot be listed.
pub fn excess(dir: &Path, policy: OutputPolicy) -> Result<Option<TrimmedRange>, WriteError> {
    Ok(trimmed_range(&excess_segments(&open_dir(dir)?, policy)?))
}

/// Applies the policy to one execution's output, also while it runs; returns the range dropped.
///
/// # Errors
/// When segments cannot be listed or removed.
pub fn trim(dir: &Path, policy: OutputPolicy) -> Result<Option<TrimmedRange>, WriteError> {
    let handle = open_dir(dir)?;
    let dropped = excess_segments(&handle, policy)?;
    for one in &dropped {
        discard(handle.as_fd(), one.number)?;
    }
    Ok(trimmed_range(&dropped))
}

fn excess_segments(
    handle: &OwnedFd,
    policy: OutputPolicy,
) -> Result<Vec<SegmentExtent>, WriteError> {
    let segments = with_snapshot(handle, None, None, |view| view.extents())?;
    Ok(plan_output(&segments, policy))
}

fn trimmed_range(dropped: &[SegmentExtent]) -> Option<TrimmedRange> {
    let (first, last) = dropped.first().zip(dropped.last())?;
    Some(TrimmedRange {
        from: first.from,
        to: last.to,
    })
}

/// Compresses the segments of an ended execution, readable as before; returns the bytes saved.
///
/// # Errors
/// When a segment cannot be read or written; segments that were not compressed stay as they were.
pub fn compress(dir: &Path, durability: Durability) -> Result<u64, WriteError> {
    let handle = open_dir(dir)?;
    let listing = files::list(handle.as_fd()).map_err(|error| failed("list", DIRECTORY, error))?;
    let mut saved = 0;
    for one in listing.segments.iter().filter(|one| one.has_segment) {
        saved += compress_segment(dir, handle.as_fd(), one.number, durability)?;
    }
    Ok(saved)
}

/// The size in bytes below which compression saves no block.
const COMPRESS_MIN_BYTES: u64 = 4096;

fn compress_segment(
    dir: &Path,
    handle: BorrowedFd<'_>,
    number: u32,
    durability: Durability,
) -> Result<u64, WriteError> {
    let name = files::segment_file_name(number, files::SEGMENT);
    let segment = files::open(handle, number, files::SEGMENT, OFlags::RDONLY)
        .and_then(|found| found.ok_or_else(|| io::ErrorKind::NotFound.into()))
        .map_err(|error| failed("open", &name, error))?;
    let before = segment
        .metadata()
        .map_err(|error| failed("measure", &name, error))?
        .len();
    if before < COMPRESS_MIN_BYTES {
        return Ok(0);
    }
    let compressed_name = files::segment_file_name(number, files::COMPRESSED);
    // Where nothing is saved, or there is no room, the segment stays.
    let compressed = compress_to(&segment, &dir.join(&compressed_name))
        .map_err(|error| failed("write", &compressed_name, error))?;
    let after = compressed
        .file()
        .metadata()
        .map_err(|error| failed("measure", &compressed_name, error))?
        .len();
    if after >= before {
        return Ok(0);
    }
    // The original is removed next.
    compressed
        .commit_with(durability)
        .map_err(|error| failed("rename", &compressed_name, error))?;
    std::fs::remove_file(dir.join(&name)).map_err(|error| failed("remove", &name, error))?;
    Ok(before - after)
}

fn compress_to(segment: &File, path: &Path) -> io::Result<AtomicFile<'static>> {
    let mut out = BufWriter::new(AtomicFile::create(path, PRIVATE_MODE)?);
    compress::compress_segment(segment, &mut out)?;
    out.into_inner().map_err(io::IntoInnerError::into_error)
}

/// Removes an ended execution's directory with all that is in it.
///
/// # Errors
/// When something cannot be removed.
pub fn remove(dir: &Path) -> Result<(), WriteError> {
    match std::fs::remove_dir_all(dir) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(failed("remove", &dir.display().to_string(), error))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Removes a segment's files, the index first: without it the rest is ignored.
fn discard(dir: BorrowedFd<'_>, number: u32) -> Result<(), WriteError> {
    for suffix in [files::INDEX, files::SEGMENT, files::COMPRESSED] {
        files::remove(dir, number, suffix)
            .map_err(|error| failed("remove", &files::segment_file_name(number, suffix), error))?;
    }
    Ok(())
}

fn open_dir(dir: &Path) -> Result<OwnedFd, WriteError> {
    files::open_dir(dir).map_err(|error| failed("open", &dir.display().to_string(), error))
}

fn failed(action: &'static str, file: &str, error: impl Into<io::Error>) -> WriteError {
    WriteError::io(action, file, error)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holding(bytes: u64, ended: Option<i64>) -> ExecutionDiskUsage {
        ExecutionDiskUsage {
            id: ExecutionId::mint(),
            bytes,
            inodes: 5,
            ended_at: ended.map(|at| Timestamp::from_second(at).unwrap()),
        }
    }

    #[test]
    fn the_oldest_ended_go_first_and_no_more_than_needed() {
        let all = [
            holding(50, Some(30)),
            holding(40, None),
            holding(30, Some(10)),
            holding(20, Some(20)),
        ];
        let policy = |max_bytes, max_inodes| StatePolicy {
            max_bytes,
            max_inodes,
        };
        let ids = |places: &[usize]| {
            places
                .iter()
                .map(|&place| all[place].id)
                .collect::<Vec<_>>()
        };
        assert_eq!(plan(&all, policy(140, 20)), []);
        assert_eq!(plan(&all, policy(139, 20)), ids(&[2]));
        assert_eq!(plan(&all, policy(109, 20)), ids(&[2, 3]));
        assert_eq!(plan(&all, policy(1000, 14)), ids(&[2, 3]));
        // A running execution stays, whatever the limit.
        assert_eq!(plan(&all, policy(0, 0)), ids(&[2, 3, 0]));
        assert_eq!(plan(&[], policy(0, 0)), []);
    }

    #[test]
    fn head_and_tail_stay() {
        let segments: Vec<SegmentExtent> = (0..10)
            .map(|number| SegmentExtent {
                number,
                from: u64::from(number) * 10,
                to: u64::from(number) * 10 + 10,
            })
            .collect();
        let numbers = |head_bytes, tail_bytes| {
            let dropped = plan_output(
                &segments,
                OutputPolicy {
                    head_bytes,
                    tail_bytes,
                },
            );
            dropped.iter().map(|one| one.number).collect::<Vec<_>>()
        };
        assert_eq!(numbers(10, 100), [] as [u32; 0]);
        assert_eq!(numbers(10, 80), [1]);
        assert_eq!(numbers(10, 81), [] as [u32; 0]);
        assert_eq!(numbers(11, 79), [] as [u32; 0]);
        assert_eq!(numbers(11, 70), [2]);
        assert_eq!(numbers(0, 0), [0, 1, 2, 3, 4, 5, 6, 7, 8]);
    }
}
