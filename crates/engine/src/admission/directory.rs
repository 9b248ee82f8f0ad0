//! The working directory.

use std::io;

use ostler_model::Text;
use rustix::fs::{Access, AtFlags, CWD, accessat};

use super::arguments::ArgumentError;

/// Whether a command can start there: absolute, there, a directory, searchable.
///
/// # Errors
/// What is wrong with it.
pub fn check(cwd: &Text) -> Result<(), ArgumentError> {
    let path = cwd.as_path();
    let wrong = |problem| {
        Err(ArgumentError::Directory {
            path: path.to_owned(),
            problem,
        })
    };
    if cwd.is_empty() {
        return wrong("it is empty");
    }
    if cwd.has_nul() {
        return wrong("it contains a NUL byte");
    }
    if !path.is_absolute() {
        return wrong("it is not absolute");
    }
    let denied = || {
        Err(ArgumentError::DirectoryPermission {
            path: path.to_owned(),
        })
    };
    match std::fs::metadata(path) {
        Ok(found) if !found.is_dir() => wrong("it is not a directory"),
        Ok(_) if accessat(CWD, path, Access::EXEC_OK, AtFlags::EACCESS).is_err() => denied(),
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => wrong("no such directory"),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => denied(),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
            wrong("a part of its path is not a directory")
        }
        Err(_) => wrong("it cannot be opened"),
    }
}
