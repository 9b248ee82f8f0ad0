//! The files of an execution's directory, and the exit record `exit`, written when the attempt is
//! over. The directory is made by [`attempt_dir`](crate::attempt_dir); what reads it back is
//! [`stored_files`](crate::stored_files) and [`spec_file::read`](crate::spec_file::read).
//!
//! It survives every kill, and a loss of power with [`Durability::Fsync`]. What makes a full disk
//! survivable is the reserve: room for the exit record is allocated before the end ([`reserve`]),
//! and a record that does not fit is shortened.

use std::os::fd::{BorrowedFd, OwnedFd};

use ostler_journal::Durability;
use ostler_model::ExecutionId;
use rustix::fs::{
    AtFlags, Dir, FallocateFlags, Mode, OFlags, fallocate, fdatasync, fsync, ftruncate, openat,
    renameat, unlinkat,
};
use rustix::io::Errno;

use crate::backend::{ExitRecord, LeaderOutcome};
use crate::spec_file::SPEC_FILE;

/// The exit record's name in an execution's directory.
pub const EXIT_FILE: &str = "exit";
/// How the names of files with output and its index begin.
const OUTPUT_PREFIX: &[u8] = b"output.";
/// Bytes of the disk that are reserved for an exit record before there is one: one block.
const RESERVED_BYTES: usize = 4096;
/// The most survivors a shortened record names.
const SHORT_SURVIVORS: usize = 32;
/// The most characters of an error text in a shortened record.
const SHORT_ERROR_CHARS: usize = 512;

/// Opens an execution's directory.
///
/// # Errors
/// As openat(2).
pub fn open_directory(executions: BorrowedFd<'_>, id: ExecutionId) -> Result<OwnedFd, Errno> {
    let flags = OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::RDONLY | OFlags::NOFOLLOW;
    openat(executions, id.to_string(), flags, Mode::empty())
}

/// Reserves space for the exit record: the file it is renamed from, with one block. Where the file
/// system cannot reserve, zeros are written instead; a copy-on-write file system still needs space
/// at the end.
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

/// As [`reserve`], for an attempt after the first, whose spec is written: the record of the
/// previous attempt is obsolete, and its space is reused.
///
/// # Errors
/// As renameat(2), and as [`reserve`].
pub fn reserve_again(dir: BorrowedFd<'_>) -> Result<(), Errno> {
    match renameat(dir, EXIT_FILE, dir, temporary_name(EXIT_FILE)) {
        Ok(()) | Err(Errno::NOENT) => reserve(dir),
        Err(errno) => Err(errno),
    }
}

/// Forces the spec of an execution and the name of its directory to the disk.
///
/// # Errors
/// As openat(2) and fsync(2).
pub fn sync_spec(executions: BorrowedFd<'_>, dir: BorrowedFd<'_>) -> Result<(), Errno> {
    sync_file(dir, SPEC_FILE)?;
    fsync(dir)?;
    fsync(executions)
}

/// Writes the exit record whole or not at all; where the disk takes no more than was reserved,
/// without what can be long. With [`Durability::Fsync`], what the record is about is on the disk
/// before it, and the record when this returns.
///
/// # Errors
/// As openat(2), write(2), ftruncate(2), renameat(2) and fsync(2). Where only a sync was refused, the
/// record is written nevertheless, and may not survive a loss of power.
pub fn write_exit_record(
    dir: BorrowedFd<'_>,
    record: &ExitRecord,
    durability: Durability,
) -> Result<(), Errno> {
    let bytes = serde_json::to_vec(record).map_err(|_| Errno::INVAL)?;
    let sync = |sync: &dyn Fn() -> Result<(), Errno>| match durability {
        Durability::Fsync => sync(),
        Durability::PageCache => Ok(()),
    };
    let output = sync(&|| sync_output(dir));
    let file = match write_unfinished(dir, &bytes) {
        Err(Errno::NOSPC | Errno::DQUOT) if bytes.len() > RESERVED_BYTES => {
            let short = serde_json::to_vec(&shortened(record)).map_err(|_| Errno::INVAL)?;
            write_unfinished(dir, &short)?
        }
        written => written?,
    };
    let content = sync(&|| fsync(&file));
    renameat(dir, temporary_name(EXIT_FILE), dir, EXIT_FILE)?;
    let name = sync(&|| fsync(dir));
    output.and(content).and(name)
}

/// Forces the output and its index to the disk; a file may be removed meanwhile.
fn sync_output(dir: BorrowedFd<'_>) -> Result<(), Errno> {
    for entry in Dir::read_from(dir)? {
        let entry = entry?;
        if entry.file_name().to_bytes().starts_with(OUTPUT_PREFIX) {
            match sync_file(dir, entry.file_name()) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(errno) => return Err(errno),
            }
        }
    }
    Ok(())
}

fn sync_file(dir: BorrowedFd<'_>, name: impl rustix::path::Arg) -> Result<(), Errno> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    fdatasync(openat(dir, name, flags, Mode::empty())?)
}

/// Overwrites in place: truncating would release the reserved space.
fn write_unfinished(dir: BorrowedFd<'_>, bytes: &[u8]) -> Result<OwnedFd, Errno> {
    let file = open_unfinished(dir)?;
    write_all(&file, bytes)?;
    ftruncate(&file, bytes.len() as u64)?;
    Ok(file)
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

/// What a file is called until it is whole.
pub(crate) fn temporary_name(name: &str) -> String {
    format!("{name}.tmp")
}

pub(crate) fn write_file(dir: BorrowedFd<'_>, name: &str, bytes: &[u8]) -> Result<(), Errno> {
    write_with(dir, name, bytes, OFlags::TRUNC)
}

pub(crate) fn write_with(
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
            lost_capabilities: Vec::new(),
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
        for durability in [Durability::PageCache, Durability::Fsync] {
            write_exit_record(dir.as_fd(), &record(3), durability).expect("written");
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
