//! [`CommitLock`]: one commit at a time writes to a workspace, also to one below it or above it.

use std::fs::File;
use std::path::{Path, PathBuf};

use parking_lot::{Condvar, Mutex};
use rustix::fs::{FlockOperation, Mode, OFlags, flock, openat};
use rustix::io::Errno;

use super::error::OverlayError;

/// The workspaces that commits of this process write to.
static WORKSPACES: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
/// Signalled when a commit of this process has ended.
static ENDED: Condvar = Condvar::new();

/// The lock of a commit on its workspace. A commit finds the conflicts before it writes; without
/// the lock, another could write between.
///
/// Commits of one process wait for each other. Other processes are excluded by `flock(2)`: the
/// workspace is locked exclusively, the directories above it are locked shared. That lock is tried,
/// not waited for, because any command that can read a directory can lock it and keep it locked.
#[derive(Debug)]
pub(super) struct CommitLock {
    workspace: PathBuf,
    /// The locked ones.
    directories: Vec<File>,
}

impl CommitLock {
    /// Waits for the commits of this process to an overlapping workspace, then locks this one.
    ///
    /// # Errors
    /// [`OverlayError::Locked`] when another process holds the lock.
    pub(super) fn acquire(workspace: &Path) -> Result<Self, OverlayError> {
        let mut workspaces = WORKSPACES.lock();
        ENDED.wait_while(&mut workspaces, |all| {
            all.iter().any(|it| overlap(it, workspace))
        });
        workspaces.push(workspace.to_owned());
        drop(workspaces);
        // From here on, dropping the value removes the entry.
        let mut lock = Self {
            workspace: workspace.to_owned(),
            directories: Vec::new(),
        };
        lock.directories = lock_directories(workspace)?;
        Ok(lock)
    }
}

impl Drop for CommitLock {
    fn drop(&mut self) {
        // Before another commit of this process may lock them. Closing them is not enough: a child
        // that has been forked and not executed has copies of the descriptors.
        for directory in self.directories.drain(..) {
            // Fails for no descriptor that was locked (flock(2)).
            let _unlocked = directory.unlock();
        }
        let mut workspaces = WORKSPACES.lock();
        if let Some(at) = workspaces.iter().position(|it| *it == self.workspace) {
            workspaces.swap_remove(at);
        }
        drop(workspaces);
        ENDED.notify_all();
    }
}

/// Whether one directory is the other or below it.
fn overlap(one: &Path, other: &Path) -> bool {
    one.starts_with(other) || other.starts_with(one)
}

/// Locks the workspace and the directories above it, except those that cannot be locked.
fn lock_directories(workspace: &Path) -> Result<Vec<File>, OverlayError> {
    let mut locked = Vec::new();
    for path in workspace.ancestors() {
        let operation = match path == workspace {
            true => FlockOperation::NonBlockingLockExclusive,
            false => FlockOperation::NonBlockingLockShared,
        };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let result = openat(rustix::fs::CWD, path, flags, Mode::empty())
            .and_then(|directory| flock(&directory, operation).map(|()| directory));
        match result {
            Ok(directory) => locked.push(File::from(directory)),
            Err(Errno::WOULDBLOCK) => {
                return Err(OverlayError::Locked {
                    path: path.to_owned().into(),
                });
            }
            // It may not be read, or its file system has no such lock: NFS wants directories open
            // for writing, which none can be.
            Err(_) => {}
        }
    }
    Ok(locked)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;

    use super::*;

    #[test]
    fn only_overlapping_workspaces_wait() {
        let directory = tempfile::tempdir().unwrap();
        let [outer, inner, other] = ["outer", "outer/inner", "outer-2"].map(|name| {
            let path = directory.path().join(name);
            std::fs::create_dir(&path).unwrap();
            path
        });
        let held = CommitLock::acquire(&outer).unwrap();
        drop(CommitLock::acquire(&other).unwrap());
        let (send, receive) = mpsc::channel();
        thread::scope(|scope| {
            scope.spawn(move || {
                let lock = CommitLock::acquire(&inner).unwrap();
                send.send("acquired").unwrap();
                drop(lock);
            });
            // The other thread cannot have sent anything yet, whether it waits already or not.
            assert!(receive.try_recv().is_err());
            drop(held);
            assert_eq!(receive.recv().unwrap(), "acquired");
        });
    }

    #[test]
    fn a_lock_of_another_process_is_an_error_and_not_waited_for() {
        let directory = tempfile::tempdir().unwrap();
        let inner = directory.path().join("inner");
        std::fs::create_dir(&inner).unwrap();
        // Locks belong to the open file: this is what another process would hold.
        let foreign = File::open(directory.path()).unwrap();
        foreign.lock().unwrap();
        for workspace in [directory.path(), &inner] {
            let error = CommitLock::acquire(workspace).unwrap_err();
            assert!(matches!(error, OverlayError::Locked { .. }), "{error}");
        }
        foreign.unlock().unwrap();
        drop(CommitLock::acquire(&inner).unwrap());
    }
}
