//! Locks by flock(2), which the kernel releases however their holder ends.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use rustix::fs::{FlockOperation, flock};
use rustix::io::{Errno, retry_on_intr};

/// The mode of a lock file that is created.
const LOCK_MODE: u32 = 0o600;

/// A held lock, released on drop or at the end of the process.
#[derive(Debug)]
pub struct FileLock {
    file: File,
}

impl FileLock {
    /// Waits for the lock on the file at `path`, which is created where it is missing.
    ///
    /// # Errors
    /// When the file cannot be created or locked.
    pub fn acquire(path: &Path) -> io::Result<Self> {
        let file = open(path)?;
        retry_on_intr(|| flock(&file, FlockOperation::LockExclusive))?;
        Ok(Self { file })
    }

    /// Takes the lock on the file at `path` if no other process holds it.
    ///
    /// # Errors
    /// When the file cannot be created or locked.
    pub fn try_acquire(path: &Path) -> io::Result<TryFileLock> {
        let file = open(path)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(TryFileLock::Acquired(Self { file })),
            Err(Errno::WOULDBLOCK) => Ok(TryFileLock::Busy(file)),
            Err(errno) => Err(errno.into()),
        }
    }

    /// The locked file, for its content.
    pub const fn file(&self) -> &File {
        &self.file
    }

    /// Whether the lock is the file at `path` now, and not one that was replaced.
    #[must_use]
    pub fn is_file_at(&self, path: &Path) -> bool {
        let own = self.file.metadata();
        own.and_then(|ours| Ok((ours, std::fs::symlink_metadata(path)?)))
            .is_ok_and(|(ours, other)| (ours.dev(), ours.ino()) == (other.dev(), other.ino()))
    }
}

/// The result of [`FileLock::try_acquire`].
#[derive(Debug)]
pub enum TryFileLock {
    /// This process holds the lock.
    Acquired(FileLock),
    /// Another process holds it; the file, to read what the holder wrote.
    Busy(File),
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(LOCK_MODE)
        .open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_has_one_holder_and_is_bound_to_its_file() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("lock");
        let held = FileLock::acquire(&path).unwrap();
        let is_busy = || matches!(FileLock::try_acquire(&path), Ok(TryFileLock::Busy(_)));
        assert!(is_busy() && held.is_file_at(&path));
        let other = root.path().join("other");
        std::fs::write(&other, "").unwrap();
        std::fs::rename(other, &path).unwrap();
        assert!(!held.is_file_at(&path) && !is_busy());
        let mode = held.file().metadata().unwrap().mode();
        assert_eq!(mode & 0o777, LOCK_MODE);
    }
}
