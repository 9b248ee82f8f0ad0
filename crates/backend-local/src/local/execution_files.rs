//! Reads the files of an execution, also where no descriptor is left.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use ostler_backend::ExitRecord;
use ostler_backend::container_file::ContainerFile;
use ostler_backend::execution_dir;
use ostler_backend::stored_files::{self, ReadFileError, SpecHeader};
use ostler_model::ExecutionId;
use ostler_sys::open_files;
use rustix::io::Errno;

/// A file of an execution, as it was found.
#[derive(Debug)]
pub(super) enum StoredFile<T> {
    /// The content as it was written.
    Complete(T),
    /// The file was never written.
    Missing,
    /// The file cannot be parsed.
    Damaged,
    /// No descriptor was left to read it.
    NoDescriptor,
}

/// The newest attempt of an execution and the shim that runs it, from its `spec.json`; none where
/// that cannot be read.
pub(super) fn read_shim(executions: BorrowedFd<'_>, id: ExecutionId) -> Option<SpecHeader> {
    let dir = open_directory(executions, id).ok()?;
    match read_spec_header(dir.as_fd()) {
        StoredFile::Complete(head) => Some(head),
        StoredFile::Missing | StoredFile::Damaged | StoredFile::NoDescriptor => None,
    }
}

/// The container of this attempt; none while it is not known.
pub(super) fn read_container(
    executions: BorrowedFd<'_>,
    id: ExecutionId,
    attempt: u32,
) -> Option<ContainerFile> {
    let dir = open_directory(executions, id).ok()?;
    let file = ContainerFile::read(dir.as_fd()).ok()??;
    (file.attempt == attempt).then_some(file)
}

/// The attempt of the exit record, if there is one.
pub(super) fn recorded_attempt(executions: BorrowedFd<'_>, id: ExecutionId) -> Option<u32> {
    let dir = open_directory(executions, id).ok()?;
    match read_exit_record(dir.as_fd()) {
        StoredFile::Complete(record) => Some(record.attempt),
        StoredFile::Missing | StoredFile::Damaged | StoredFile::NoDescriptor => None,
    }
}

/// Opens the directory of an execution, with emergency descriptors: access to one execution must
/// not depend on how many others run.
pub(super) fn open_directory(
    executions: BorrowedFd<'_>,
    id: ExecutionId,
) -> Result<OwnedFd, Errno> {
    let open = || execution_dir::open_directory(executions, id);
    open_files::with_emergency_fds(open, |errno| open_files::is_exhausted(*errno))
}

pub(super) fn read_spec_header(dir: BorrowedFd<'_>) -> StoredFile<SpecHeader> {
    read_stored(|| stored_files::read_spec_header(dir))
}

pub(super) fn read_exit_record(dir: BorrowedFd<'_>) -> StoredFile<ExitRecord> {
    read_stored(|| stored_files::read_exit_record(dir))
}

/// Reads a file; where no descriptor is left, by one of those held back.
fn read_stored<T>(read: impl FnMut() -> Result<Option<T>, ReadFileError>) -> StoredFile<T> {
    let is_exhausted = |error: &ReadFileError| match error {
        ReadFileError::Open(errno) => open_files::is_exhausted(*errno),
        ReadFileError::Damaged => false,
    };
    match open_files::with_emergency_fds(read, is_exhausted) {
        Ok(Some(stored)) => StoredFile::Complete(stored),
        Ok(None) => StoredFile::Missing,
        Err(error) if is_exhausted(&error) => StoredFile::NoDescriptor,
        Err(_) => StoredFile::Damaged,
    }
}
