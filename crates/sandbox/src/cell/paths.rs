//! Paths as the kernel takes them.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};

use rustix::io::Errno;

use super::CellError;

/// An absolute path for the kernel.
pub(super) fn c_path(path: &Path) -> Result<CString, CellError> {
    CString::new(path.as_os_str().as_bytes()).map_err(|_| CellError::on("path", Errno::INVAL, path))
}

/// The same relative to a root that is held by descriptor: without its leading slash.
pub(super) fn below_root(path: &Path) -> Result<CString, CellError> {
    let relative = path.strip_prefix("/").unwrap_or(path);
    c_path(relative)
}

/// Absolute and made of ordinary names only.
pub(super) fn plain(path: &Path) -> bool {
    path.is_absolute()
        && path
            .components()
            .all(|it| matches!(it, Component::RootDir | Component::Normal(_)))
}
