//! Locks by flock(2), which the kernel releases however their holder ends.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use rustix::fs::{FlockOperation, flock};

const LOCK_MODE: u32 = 0o600;

/// A held lock, released on drop or at the end of the process.
#[derive(Debug)]
pub(crate) struct FileLock {
    file: File,
}

impl FileLock {
    /// Whether the lock is the file at `path` now, and not one that was replaced.
    pub(crate) fn is_file_at(&self, path: &Path) -> bool {
        let own = self.file.metadata();
        own.and_then(|ours| Ok((ours, std::fs::symlink_metadata(path)?)))
            .is_ok_and(|(ours, other)| (ours.dev(), ours.ino()) == (other.dev(), other.ino()))
    }

    /// Records the served state directory in the lock file, for processes that find it locked.
    pub(crate) fn write_state_dir(&mut self, state: &Path) {
        let line = [b"\n", state.as_os_str().as_bytes()].concat();
        if let Err(error) = self.file.write_all(&line) {
            tracing::warn!(%error, "the lock does not say what is served");
        }
    }
}

/// The result of an attempt to lock.
#[derive(Debug)]
pub(crate) enum TryLock {
    /// This process holds the lock.
    Acquired(FileLock),
    /// Another process holds it: its pid, if recorded.
    Busy(Option<u32>),
}

/// Tries to lock the file at `path`, and writes the pid of this process to it.
///
/// # Errors
/// When the file cannot be created or written.
pub(crate) fn try_lock(path: &Path) -> io::Result<TryLock> {
    let mut file = open(path)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {
            write_pid(&mut file);
            Ok(TryLock::Acquired(FileLock { file }))
        }
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(TryLock::Busy(read_pid(&mut file))),
        Err(error) => Err(error.into()),
    }
}

/// Waits for the lock at `path`, and writes the pid of this process to it.
///
/// # Errors
/// When the file cannot be created or locked.
pub(crate) fn lock(path: &Path) -> io::Result<FileLock> {
    let mut file = open(path)?;
    rustix::io::retry_on_intr(|| flock(&file, FlockOperation::LockExclusive))?;
    write_pid(&mut file);
    Ok(FileLock { file })
}

/// Writes the pid for processes that find the file locked. It is informative only: a full disk is
/// no reason to fail.
fn write_pid(file: &mut File) {
    let result = file
        .set_len(0)
        .and_then(|()| write!(file, "{}", std::process::id()));
    if let Err(error) = result {
        tracing::warn!(%error, "the lock does not say who holds it");
    }
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

fn read_pid(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.rewind().ok()?;
    file.read_to_string(&mut text).ok()?;
    text.lines().next()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_holds_it_and_the_next_is_told_who() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("lock");
        let TryLock::Acquired(first) = try_lock(&path).unwrap() else {
            panic!("nobody held it");
        };
        let busy = try_lock(&path).unwrap();
        assert!(matches!(busy, TryLock::Busy(Some(pid)) if pid == std::process::id()));
        drop(first);
        assert!(matches!(try_lock(&path).unwrap(), TryLock::Acquired(_)));
    }
}
