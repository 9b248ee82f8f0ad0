//! Validation of the working directory.

use std::io;

use ostler_model::ByteString;
use rustix::fs::{Access, AtFlags, CWD, accessat};

use super::arguments::ArgumentError;

/// Whether a command can start in it: an absolute path of an existing, searchable directory.
///
/// # Errors
/// The problem with it.
pub fn check(cwd: &ByteString) -> Result<(), ArgumentError> {
    let path = cwd.as_path();
    let invalid = |problem| {
        Err(ArgumentError::Directory {
            path: path.to_owned(),
            problem,
        })
    };
    if cwd.is_empty() {
        return invalid("it is empty");
    }
    if cwd.has_nul() {
        return invalid("it contains a NUL byte");
    }
    if !path.is_absolute() {
        return invalid("it is not absolute");
    }
    let denied = || {
        Err(ArgumentError::DirectoryPermission {
            path: path.to_owned(),
        })
    };
    match std::fs::metadata(path) {
        Ok(found) if !found.is_dir() => invalid("it is not a directory"),
        Ok(_) if accessat(CWD, path, Access::EXEC_OK, AtFlags::EACCESS).is_err() => denied(),
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => invalid("no such directory"),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => denied(),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
            invalid("a part of its path is not a directory")
        }
        Err(_) => invalid("it cannot be opened"),
    }
}
