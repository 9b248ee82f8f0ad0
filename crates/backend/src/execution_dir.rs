//! Writes an execution's directory: `spec.json` before anything runs, the exit record `exit` when
//! the attempt is over. What reads it back is [`stored_files`](crate::stored_files) and
//! [`spec_file::read`](crate::spec_file::read).
//!
//! No fsync: it survives every kill, not power loss. What makes a full disk survivable is the
//! reserve: room for the exit record is allocated before the end ([`reserve`]), and a record that
//! does not fit is shortened.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use ostler_model::{ExecutionId, Timestamp};
use rustix::fs::{
    AtFlags, FallocateFlags, Mode, OFlags, fallocate, fstatvfs, ftruncate, mkdirat, openat,
    renameat, unlinkat,
};
use rustix::io::Errno;

use crate::backend::{ExitRecord, LeaderOutcome};
use crate::prepared_dir::DirPreparation;
use crate::spec_file::{SPEC_FILE, SPEC_FILE_VERSION, ShimIdentity};

/// The exit record's name in an execution's directory.
pub const EXIT_FILE: &str = "exit";
/// Bytes of the disk that are reserved for an exit record before there is one: one block.
const RESERVED_BYTES: usize = 4096;
/// Below this many free blocks or inodes, a disk counts as low.
const LOW_BLOCKS: u64 = 1_024;
const LOW_INODES: u64 = 256;
/// The most survivors a shortened record names.
const SHORT_SURVIVORS: usize = 32;
/// The most characters of an error text in a shortened record.
const SHORT_ERROR_CHARS: usize = 512;

/// The directory of an execution, with its spec written.
#[derive(Debug)]
pub struct ExecutionDirectory {
    /// The directory, open for the calls that take a path relative to it.
    pub dir: OwnedFd,
    /// Whether the room for its exit record is reserved.
    pub has_reserve: bool,
}

impl ExecutionDirectory {
    const fn without_reserve(dir: OwnedFd) -> Self {
        Self {
            dir,
            has_reserve: false,
        }
    }
}

/// What `spec.json` says of an attempt.
#[derive(Debug, Clone, Copy)]
pub struct AttemptSpec<'a> {
    /// The execution.
    pub id: ExecutionId,
    /// Which attempt of it, from 1.
    pub attempt: u32,
    /// The process that carries it out.
    pub boot: &'a ShimIdentity,
    /// The [`Spec`](ostler_model::Spec) as JSON, written verbatim.
    pub spec: &'a [u8],
}

/// Makes the execution's directory and writes its `spec.json`. A first attempt for which that
/// fails leaves nothing.
///
/// # Errors
/// As mkdirat(2), openat(2), write(2) and renameat(2); `EXIST` where the execution began before.
pub fn create(
    executions: BorrowedFd<'_>,
    preparation: &mut DirPreparation,
    start: &AttemptSpec<'_>,
) -> Result<ExecutionDirectory, Errno> {
    let spec = spec_json(start);
    if start.attempt > 1 {
        match mkdirat(executions, start.id.to_string(), Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno),
        }
        let dir = open_directory(executions, start.id)?;
        replace_file(dir.as_fd(), SPEC_FILE, &spec)?;
        return Ok(ExecutionDirectory::without_reserve(dir));
    }
    loop {
        let (mut prepared, was_prepared) = preparation.acquire(executions)?;
        if is_disk_low(executions)
            && let Err(errno) = prepared.reserve()
        {
            prepared.discard(executions);
            return Err(errno);
        }
        let has_reserve = prepared.has_reserve();
        match prepared.publish(executions, start.id, &spec) {
            Ok(dir) => return Ok(ExecutionDirectory { dir, has_reserve }),
            // The directory exists before its spec, or the execution was already started: a client
            // may have chosen its id and sent the start to two daemons, of which the first died
            // with its plan on the way.
            Err((Errno::EXIST | Errno::NOTEMPTY, prepared)) => {
                preparation.put_back(prepared);
                let dir = open_directory(executions, start.id)?;
                write_new_file(dir.as_fd(), SPEC_FILE, &spec)?;
                return Ok(ExecutionDirectory::without_reserve(dir));
            }
            Err((errno, prepared)) => {
                prepared.discard(executions);
                // The prepared directory may have been removed meanwhile. What a full disk has left
                // is reserved for the ends of running executions.
                if !was_prepared || matches!(errno, Errno::NOSPC | Errno::DQUOT) {
                    return Err(errno);
                }
            }
        }
    }
}

/// Writes a file that does not exist yet; on failure it does not exist afterwards.
fn write_new_file(dir: BorrowedFd<'_>, name: &str, bytes: &[u8]) -> Result<(), Errno> {
    let written = write_with(dir, name, bytes, OFlags::EXCL);
    if written.is_err_and(|errno| errno != Errno::EXIST) {
        remove(dir, name);
    }
    written
}

/// Opens an execution's directory.
///
/// # Errors
/// As openat(2).
pub fn open_directory(executions: BorrowedFd<'_>, id: ExecutionId) -> Result<OwnedFd, Errno> {
    let flags = OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::RDONLY | OFlags::NOFOLLOW;
    openat(executions, id.to_string(), flags, Mode::empty())
}

fn spec_json(start: &AttemptSpec<'_>) -> Vec<u8> {
    let in_process = if start.boot.in_process {
        ",\"in_process\":true"
    } else {
        ""
    };
    let head = format!(
        "{{\"version\":{SPEC_FILE_VERSION},\"id\":\"{}\",\"attempt\":{},\"created_at\":\"{}\",\
         \"boot\":{{\"id\":\"{}\",\"shim_pid\":{},\"shim_start\":{}{in_process}}},\"spec\":",
        start.id,
        start.attempt,
        Timestamp::now(),
        start.boot.id,
        start.boot.shim_pid,
        start.boot.shim_start,
    );
    let mut bytes = head.into_bytes();
    bytes.extend_from_slice(start.spec);
    bytes.extend_from_slice(b"}\n");
    bytes
}

/// Whether the disk is so full that a start reserves space for its exit record first. Otherwise
/// that is done once the command runs. True where the file system does not report its space.
fn is_disk_low(executions: BorrowedFd<'_>) -> bool {
    fstatvfs(executions).is_ok_and(|disk| {
        disk.f_bavail < LOW_BLOCKS || (disk.f_files > 0 && disk.f_favail < LOW_INODES)
    })
}

/// Reserves the room for the exit record: the file it is renamed from, and a block of it. Where
/// the file system cannot reserve, zeros take it; one that writes every byte to a new place needs
/// room at the end all the same.
///
/// # Errors
/// As openat(2), fallocate(2) and write(2).
pub fn reserve(dir: BorrowedFd<'_>) -> Result<(), Errno> {
    let file = open_unfinished(dir)?;
    match fallocate(&file, FallocateFlags::KEEP_SIZE, 0, RESERVED_BYTES as u64) {
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => write_all(&file, &[0; RESERVED_BYTES]),
        reserved => reserved,
    }
}

/// As [`reserve`], for an attempt after the first, whose spec is written: the record of the one
/// before is nobody's any more, and its room is this one's.
///
/// # Errors
/// As renameat(2), and as [`reserve`].
pub fn reserve_again(dir: BorrowedFd<'_>) -> Result<(), Errno> {
    match renameat(dir, EXIT_FILE, dir, temporary_name(EXIT_FILE)) {
        Ok(()) | Err(Errno::NOENT) => reserve(dir),
        Err(errno) => Err(errno),
    }
}

/// Writes the exit record whole or not at all; where the disk takes no more than was reserved,
/// without what can be long.
///
/// # Errors
/// As openat(2), write(2), ftruncate(2) and renameat(2).
pub fn write_exit_record(dir: BorrowedFd<'_>, record: &ExitRecord) -> Result<(), Errno> {
    let bytes = serde_json::to_vec(record).map_err(|_| Errno::INVAL)?;
    match write_unfinished(dir, &bytes) {
        Err(Errno::NOSPC | Errno::DQUOT) if bytes.len() > RESERVED_BYTES => {
            let short = serde_json::to_vec(&shortened(record)).map_err(|_| Errno::INVAL)?;
            write_unfinished(dir, &short)?;
        }
        written => written?,
    }
    renameat(dir, temporary_name(EXIT_FILE), dir, EXIT_FILE)
}

/// Overwrites in place: truncating would release the reserved space.
fn write_unfinished(dir: BorrowedFd<'_>, bytes: &[u8]) -> Result<(), Errno> {
    let file = open_unfinished(dir)?;
    write_all(&file, bytes)?;
    ftruncate(&file, bytes.len() as u64)
}

fn open_unfinished(dir: BorrowedFd<'_>) -> Result<OwnedFd, Errno> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::CLOEXEC;
    openat(
        dir,
        temporary_name(EXIT_FILE),
        flags,
        Mode::RUSR | Mode::WUSR,
    )
}

/// A record that fits into the reserved space and states that it was shortened.
fn shortened(record: &ExitRecord) -> ExitRecord {
    let mut short = record.clone();
    short.survivors.truncate(SHORT_SURVIVORS);
    short.autorun.more += short.autorun.found.len() as u64;
    short.autorun.found.clear();
    if let Some(error) = &mut short.journal_error {
        *error = error.chars().take(SHORT_ERROR_CHARS).collect();
    }
    if let LeaderOutcome::SpawnFailed { message, .. } = &mut short.outcome {
        *message = message.chars().take(SHORT_ERROR_CHARS).collect();
    }
    short
}

/// Removes a file of the directory, if it is there.
pub fn remove(dir: BorrowedFd<'_>, name: &str) {
    let _absent = unlinkat(dir, name, AtFlags::empty());
}

fn replace_file(dir: BorrowedFd<'_>, name: &str, bytes: &[u8]) -> Result<(), Errno> {
    let temporary = temporary_name(name);
    if let Err(error) = write_file(dir, &temporary, bytes) {
        remove(dir, &temporary);
        return Err(error);
    }
    renameat(dir, &temporary, dir, name)
}

/// What a file is called until it is whole.
pub(crate) fn temporary_name(name: &str) -> String {
    format!("{name}.tmp")
}

pub(crate) fn write_file(dir: BorrowedFd<'_>, name: &str, bytes: &[u8]) -> Result<(), Errno> {
    write_with(dir, name, bytes, OFlags::TRUNC)
}

fn write_with(
    dir: BorrowedFd<'_>,
    name: &str,
    bytes: &[u8],
    extra_flags: OFlags,
) -> Result<(), Errno> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::CLOEXEC | extra_flags;
    let file = openat(dir, name, flags, Mode::RUSR | Mode::WUSR)?;
    write_all(&file, bytes)
}

fn write_all(file: &OwnedFd, bytes: &[u8]) -> Result<(), Errno> {
    let mut rest = bytes;
    while !rest.is_empty() {
        let written = rustix::io::retry_on_intr(|| rustix::io::write(file, rest))?;
        rest = &rest[written..];
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;
    use std::os::unix::fs::MetadataExt;

    use ostler_model::{Timestamp, Usage};

    use super::*;
    use crate::backend::EXIT_RECORD_VERSION;

    fn record(survivors: usize) -> ExitRecord {
        ExitRecord {
            version: EXIT_RECORD_VERSION,
            attempt: 1,
            pid: 7,
            started_at: Timestamp::UNIX_EPOCH,
            ended_at: Timestamp::UNIX_EPOCH,
            lived_ms: 1,
            outcome: LeaderOutcome::SpawnFailed {
                step: "exec".to_owned(),
                errno: None,
                message: "m".repeat(10_000),
            },
            leftovers: 0,
            survivors: (0..).take(survivors).collect(),
            out_of_memory: false,
            limits_hit: Vec::new(),
            usage: Usage::default(),
            output_end: 5,
            journal_error: Some("e".repeat(10_000)),
            lost_bytes: 5,
            autorun: Box::default(),
        }
    }

    #[test]
    fn what_is_reserved_is_what_the_record_is_written_to() {
        let scratch = tempfile::tempdir().expect("a directory");
        let dir = std::fs::File::open(scratch.path()).expect("it opens");
        let path = scratch.path().join(temporary_name(EXIT_FILE));
        reserve(dir.as_fd()).expect("there is room");
        let reserved = path.metadata().expect("it is there");
        assert_eq!(reserved.len(), 0, "nothing is in it");
        assert!(reserved.blocks() > 0, "and it has room");
        for _ in 0..2 {
            write_exit_record(dir.as_fd(), &record(3)).expect("written");
            let exit = scratch.path().join(EXIT_FILE);
            let written = exit.metadata().expect("it is there");
            assert_eq!(written.ino(), reserved.ino(), "no inode was needed");
            let bytes = std::fs::read(exit).expect("readable");
            let read: ExitRecord = serde_json::from_slice(&bytes).expect("whole");
            assert_eq!(read, record(3));
            reserve_again(dir.as_fd()).expect("the room of the one before");
        }
    }

    #[test]
    fn what_can_be_long_is_left_out_of_a_record_that_has_to_be_short() {
        let short = shortened(&record(256));
        let bytes = serde_json::to_vec(&short).expect("spelled");
        assert!(bytes.len() <= RESERVED_BYTES, "{}", bytes.len());
        assert_eq!((short.lost_bytes, short.output_end), (5, 5));
    }
}
