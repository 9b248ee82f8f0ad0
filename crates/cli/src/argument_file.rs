//! Files that a user names as arguments.

use std::fs::File;
use std::io;
use std::path::Path;

use ostler_sys::regular_file;

/// Where the names of descriptors are that a shell passes, as with `<(…)`.
const DESCRIPTORS: [&str; 3] = ["/dev/fd", "/dev/stdin", "/proc/self/fd"];

/// Opens a regular file, or a descriptor that was passed, which somebody has open. A named pipe is
/// refused, since nobody need have it open.
///
/// # Errors
/// As open(2), and [`regular_file::WrongFileType`].
pub(crate) fn open(path: &Path) -> io::Result<File> {
    if DESCRIPTORS.iter().any(|passed| path.starts_with(passed)) {
        return File::open(path);
    }
    regular_file::open(path)
}
