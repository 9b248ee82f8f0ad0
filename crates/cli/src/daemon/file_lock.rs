//! The daemon's lock files: who holds a lock is written into its file.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use ostler_sys::file_lock::{FileLock, TryFileLock};

/// Records the served state directory in the lock file, for processes that find it locked.
pub(crate) fn write_state_dir(lock: &FileLock, state: &Path) {
    let line = [b"\n", state.as_os_str().as_bytes()].concat();
    if let Err(error) = lock.file().write_all(&line) {
        tracing::warn!(%error, "the lock does not say what is served");
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
    Ok(match FileLock::try_acquire(path)? {
        TryFileLock::Acquired(lock) => {
            write_pid(lock.file());
            TryLock::Acquired(lock)
        }
        TryFileLock::Busy(mut file) => TryLock::Busy(read_pid(&mut file)),
    })
}

/// Waits for the lock at `path`, and writes the pid of this process to it.
///
/// # Errors
/// When the file cannot be created or locked.
pub(crate) fn lock(path: &Path) -> io::Result<FileLock> {
    let lock = FileLock::acquire(path)?;
    write_pid(lock.file());
    Ok(lock)
}

/// Writes the pid for processes that find the file locked. It is informative only: a full disk is
/// no reason to fail.
fn write_pid(mut file: &File) {
    let result = file
        .set_len(0)
        .and_then(|()| write!(file, "{}", std::process::id()));
    if let Err(error) = result {
        tracing::warn!(%error, "the lock does not say who holds it");
    }
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
    fn one_holds_the_lock_and_the_next_gets_the_holder() {
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
