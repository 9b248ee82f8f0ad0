//! The memory extent: how far output that is in memory only may have been reported to readers.
//!
//! Where the memory is lost with its processes, nothing else records how far it reached, and the
//! next attempt must not use an offset again. A full disk still accepts an empty file and its size:
//! the size records the extent.

use std::fs::File;
use std::os::fd::BorrowedFd;

use rustix::fs::{AtFlags, Mode, OFlags};

/// The name of the file; it exists while output goes to memory.
pub(crate) const REACH: &str = "output.reach";
/// Bytes of output for each byte of the file's size: this keeps the size below every limit on file
/// sizes, and changes it rarely.
const UNIT_BYTES: u64 = 256 * 1024;

/// The file while output goes to memory.
#[derive(Debug, Default)]
pub(crate) struct MemoryExtent {
    file: Option<File>,
    units: u64,
}

impl MemoryExtent {
    /// Records that output reaches to `end`, before any reader learns of it. Where the disk does
    /// not
    /// even accept an empty file, nothing is recorded.
    pub(crate) fn extend_to(&mut self, dir: BorrowedFd<'_>, end: u64) {
        let units = end.div_ceil(UNIT_BYTES);
        if units <= self.units {
            return;
        }
        self.units = units;
        if self.file.is_none() {
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::CLOEXEC;
            let file = rustix::fs::openat(dir, REACH, flags, Mode::from_raw_mode(0o600));
            self.file = file.ok().map(File::from);
        }
        if let Some(file) = &self.file {
            let _ignored = file.set_len(units);
        }
    }
}

/// The upper bound of where output in memory ended; 0 where nothing is recorded.
pub(crate) fn read(dir: BorrowedFd<'_>) -> u64 {
    let size = rustix::fs::statat(dir, REACH, AtFlags::SYMLINK_NOFOLLOW)
        .map_or(0, |file| u64::try_from(file.st_size).unwrap_or(0));
    size.saturating_mul(UNIT_BYTES)
}

/// Removes the file: the output in memory was written to disk, or its end is recorded elsewhere.
pub(crate) fn remove(dir: BorrowedFd<'_>) {
    // If it stays, the gap before the next attempt is longer, and nothing else.
    let _ignored = rustix::fs::unlinkat(dir, REACH, AtFlags::empty());
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn it_reaches_over_what_was_said_and_not_far() {
        let dir = tempfile::tempdir().expect("a directory");
        let handle = File::open(dir.path()).expect("it opens");
        let dir = handle.as_fd();
        assert_eq!(read(dir), 0);
        let mut reach = MemoryExtent::default();
        for end in [1, 100_000, 262_144, 262_145, 10_000_000_000] {
            reach.extend_to(dir, end);
            assert!((end..end + UNIT_BYTES).contains(&read(dir)), "{end}");
        }
        reach.extend_to(dir, 5);
        assert!(read(dir) >= 10_000_000_000, "never less");
        remove(dir);
        remove(dir);
        assert_eq!(read(dir), 0);
    }
}
