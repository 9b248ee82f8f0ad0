//! Reads the state of an execution's newest attempt from its directory: the head of `spec.json` and
//! the exit record. The reader for [`execution_dir`](crate::execution_dir).

use std::io::{ErrorKind, Read};
use std::os::fd::BorrowedFd;

use rustix::io::Errno;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use ostler_model::BackendName;

use crate::backend::{EXIT_RECORD_VERSION, ExitRecord};
use crate::execution_dir::EXIT_FILE;
use crate::spec_file::{self, SPEC_BYTES, SPEC_FILE, SPEC_FILE_VERSION, ShimIdentity};

/// Bytes of the largest exit record.
const EXIT_RECORD_BYTES: u64 = 1024 * 1024;

/// What recovery and inspections need of `spec.json`: of the spec itself only its backend.
#[derive(Debug, Deserialize)]
pub struct SpecHeader {
    /// The format's version, at most [`SPEC_FILE_VERSION`].
    pub version: u8,
    /// The newest attempt, from 1.
    pub attempt: u32,
    /// The process that carries it out.
    pub boot: ShimIdentity,
    /// The backend.
    #[serde(default)]
    pub spec: SpecBackend,
}

/// The backend of a specification.
#[derive(Debug, Default, Deserialize)]
pub struct SpecBackend {
    /// Its name; none where that is not known.
    #[serde(default)]
    pub place: Option<BackendName>,
}

/// A file of an execution's directory that cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ReadFileError {
    /// It cannot be opened: openat(2).
    #[error("cannot be opened: {0}")]
    Open(Errno),
    /// It is not what this version writes, or cannot be read to its end.
    #[error("is damaged")]
    Damaged,
}

/// The head of `spec.json`; none where the file was never written.
///
/// # Errors
/// When it cannot be opened, is damaged or of a newer version.
pub fn read_spec_header(dir: BorrowedFd<'_>) -> Result<Option<SpecHeader>, ReadFileError> {
    let header = read_json::<SpecHeader>(dir, SPEC_FILE, SPEC_BYTES)?;
    check_version(header, |header| header.version <= SPEC_FILE_VERSION)
}

/// The exit record, of whichever attempt left it; none where none was written.
///
/// # Errors
/// When it cannot be opened, is damaged or of a newer version.
pub fn read_exit_record(dir: BorrowedFd<'_>) -> Result<Option<ExitRecord>, ReadFileError> {
    let record = read_json::<ExitRecord>(dir, EXIT_FILE, EXIT_RECORD_BYTES)?;
    check_version(record, |record| record.version <= EXIT_RECORD_VERSION)
}

fn check_version<T>(
    stored: Option<T>,
    is_known: impl Fn(&T) -> bool,
) -> Result<Option<T>, ReadFileError> {
    match stored {
        Some(value) if !is_known(&value) => Err(ReadFileError::Damaged),
        stored => Ok(stored),
    }
}

pub(crate) fn read_json<T: DeserializeOwned>(
    dir: BorrowedFd<'_>,
    name: &str,
    limit: u64,
) -> Result<Option<T>, ReadFileError> {
    let file = match spec_file::open_regular(dir, name) {
        Ok(file) => file.ok_or(ReadFileError::Damaged)?,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => {
            let errno = Errno::from_io_error(&error);
            return Err(ReadFileError::Open(errno.unwrap_or(Errno::IO)));
        }
    };
    let mut bytes = Vec::new();
    file.take(limit)
        .read_to_end(&mut bytes)
        .map_err(|_| ReadFileError::Damaged)?;
    serde_json::from_slice(&bytes)
        .map(Some)
        .map_err(|_| ReadFileError::Damaged)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn a_missing_file_is_none_and_a_newer_or_damaged_one_an_error() {
        let scratch = tempfile::tempdir().expect("a directory");
        let dir = File::open(scratch.path()).expect("it opens");
        let read = || read_spec_header(dir.as_fd()).map(|head| head.map(|head| head.attempt));
        assert_eq!(read(), Ok(None));
        let boot = r#""boot":{"id":"b","shim_pid":1,"shim_start":2}"#;
        for (text, expected) in [
            (
                format!(r#"{{"version":1,"attempt":3,{boot}}}"#),
                Ok(Some(3)),
            ),
            (
                format!(r#"{{"version":2,"attempt":3,{boot}}}"#),
                Err(ReadFileError::Damaged),
            ),
            (r#"{"version":1"#.to_owned(), Err(ReadFileError::Damaged)),
        ] {
            fs::write(scratch.path().join(SPEC_FILE), text).expect("written");
            assert_eq!(read(), expected);
        }
    }
}
