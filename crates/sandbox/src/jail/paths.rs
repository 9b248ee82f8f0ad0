//! Conversion of paths for system calls.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};

use rustix::io::Errno;

use super::JailError;

/// An absolute path as a C string.
pub(super) fn c_path(path: &Path) -> Result<CString, JailError> {
    CString::new(path.as_os_str().as_bytes()).map_err(|_| JailError::on("path", Errno::INVAL, path))
}

/// The same relative to a root held as a descriptor: without its leading slash.
pub(super) fn relative_to_root(path: &Path) -> Result<CString, JailError> {
    let relative = path.strip_prefix("/").unwrap_or(path);
    c_path(relative)
}

/// Whether a path is absolute and has no `.` or `..`.
pub(super) fn is_plain(path: &Path) -> bool {
    path.is_absolute()
        && path
            .components()
            .all(|it| matches!(it, Component::RootDir | Component::Normal(_)))
}
