//! How far readers may have been told of output that is in memory only.
//!
//! Where memory goes with its processes, nobody else knows it, and the next attempt must not use
//! an offset again. A full disk still takes an empty file and sets its size: the size says it.

use std::fs::File;
use std::os::fd::BorrowedFd;

use rustix::fs::{AtFlags, Mode, OFlags};

/// The file; there while output goes to memory.
pub(crate) const REACH: &str = "output.reach";
/// Bytes of output for each byte of the file's size: so it stays below every limit on the size
/// of files, and is set rarely.
const UNIT_BYTES: u64 = 256 * 1024;

/// The file while it is written.
#[derive(Debug, Default)]
pub(crate) struct MemoryExtent {
    file: Option<File>,
    units: u64,
}

impl MemoryExtent {
    /// Says that output reaches to `end`, before anybody is told. Where the disk does not even
    /// take an empty file, nothing says it.
    pub(crate) fn raise(&mut self, dir: BorrowedFd<'_>, end: u64) {
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
            let _unsaid = file.set_len(units);
        }
    }
}

/// Where output that was in memory ended at the latest; 0 where nothing says it.
pub(crate) fn read(dir: BorrowedFd<'_>) -> u64 {
    let size = rustix::fs::statat(dir, REACH, AtFlags::SYMLINK_NOFOLLOW)
        .map_or(0, |file| u64::try_from(file.st_size).unwrap_or(0));
    size.saturating_mul(UNIT_BYTES)
}

/// What was in memory is on disk, or its end is on record.
pub(crate) fn remove(dir: BorrowedFd<'_>) {
    // Left behind, it makes the gap before the next attempt longer, and nothing else.
    let _left = rustix::fs::unlinkat(dir, REACH, AtFlags::empty());
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
            reach.raise(dir, end);
            assert!((end..end + UNIT_BYTES).contains(&read(dir)), "{end}");
        }
        reach.raise(dir, 5);
        assert!(read(dir) >= 10_000_000_000, "never less");
        remove(dir);
        remove(dir);
        assert_eq!(read(dir), 0);
    }
}
