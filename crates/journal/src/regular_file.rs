//! Regular files: what is in the place of one, such as a named pipe, is not waited for.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::fs::OFlags;

/// Opens a regular file for reading.
///
/// # Errors
/// As open(2); [`io::ErrorKind::InvalidInput`] where something else is there.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    open_with(OpenOptions::new().read(true), path)
}

/// As [`open`], with these options.
///
/// # Errors
/// As [`open`].
pub(crate) fn open_with(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let file = options.custom_flags(flags).open(path)?;
    if file.metadata()?.is_file() {
        return Ok(file);
    }
    let message = "it is not a regular file";
    Err(io::Error::new(io::ErrorKind::InvalidInput, message))
}

/// Reads a regular file.
///
/// # Errors
/// As [`open`], and as read(2).
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}
