//! Paths as the kernel takes them.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};

use rustix::io::Errno;

use super::JailError;

/// An absolute path for the kernel.
pub(super) fn c_path(path: &Path) -> Result<CString, JailError> {
    CString::new(path.as_os_str().as_bytes()).map_err(|_| JailError::on("path", Errno::INVAL, path))
}

/// The same relative to a root that is held by descriptor: without its leading slash.
pub(super) fn relative_to_root(path: &Path) -> Result<CString, JailError> {
    let relative = path.strip_prefix("/").unwrap_or(path);
    c_path(relative)
}

/// Absolute and made of ordinary names only.
pub(super) fn is_plain(path: &Path) -> bool {
    path.is_absolute()
        && path
            .components()
            .all(|it| matches!(it, Component::RootDir | Component::Normal(_)))
}
