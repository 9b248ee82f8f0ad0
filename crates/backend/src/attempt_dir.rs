//! Makes an execution's directory for an attempt and writes `spec.json` into it, before anything
//! runs.

use std::io::{self, Write as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use ostler_journal::atomic_file::{AtomicFile, PRIVATE_MODE};
use ostler_model::{ExecutionId, Timestamp};
use rustix::fs::{Mode, OFlags, fstatvfs, mkdirat};
use rustix::io::Errno;

use crate::execution_dir;
use crate::prepared_dir::DirPreparation;
use crate::spec_file::{SPEC_FILE, SPEC_FILE_VERSION, ShimIdentity};

/// Below this many free blocks or inodes, a disk counts as low.
const LOW_BLOCKS: u64 = 1_024;
const LOW_INODES: u64 = 256;

/// The directory of an execution, with its spec written.
#[derive(Debug)]
pub struct ExecutionDirectory {
    /// The directory, open for system calls with relative paths.
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

/// The attempt as recorded in `spec.json`.
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
        let dir = execution_dir::open_directory(executions, start.id)?;
        replace_file(dir.as_fd(), SPEC_FILE, &spec)?;
        return Ok(ExecutionDirectory::without_reserve(dir));
    }
    loop {
        let (mut prepared, was_prepared) = preparation.acquire(executions)?;
        if !prepared.has_reserve()
            && is_disk_low(executions)
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
                let dir = execution_dir::open_directory(executions, start.id)?;
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
    let written = execution_dir::write_with(dir, name, bytes, OFlags::EXCL);
    if written.is_err_and(|errno| errno != Errno::EXIST) {
        execution_dir::remove(dir, name);
    }
    written
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

fn replace_file(dir: BorrowedFd<'_>, name: &str, bytes: &[u8]) -> Result<(), Errno> {
    let replace = || {
        let mut file = AtomicFile::create_at(dir, name, PRIVATE_MODE)?;
        file.write_all(bytes)?;
        file.commit()
    };
    replace().map_err(|error: io::Error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
}
