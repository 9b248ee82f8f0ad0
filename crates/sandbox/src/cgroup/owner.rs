//! Ownership of slots: several daemons of one user, also in other pid namespaces, share our
//! directory in each hierarchy. A slot's name begins with the state directory it belongs to, and
//! its shim holds a flock(2) on the slot's directory as long as it lives: both are valid in every
//! pid namespace, where a pid is not.

use std::fmt;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{FlockOperation, fstat};
use rustix::io::Errno;

use super::files;

/// Identifies a state directory by device and inode; slots are named after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SlotOwner {
    device: u64,
    inode: u64,
}

impl SlotOwner {
    /// The owner of slots that belong to this directory.
    ///
    /// # Errors
    /// As fstat(2).
    pub fn of(directory: BorrowedFd<'_>) -> Result<Self, Errno> {
        let stat = fstat(directory)?;
        Ok(Self {
            device: stat.st_dev,
            inode: stat.st_ino,
        })
    }
}

impl fmt::Display for SlotOwner {
    /// Without a hyphen, which separates it from the rest of a slot's name.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}.{:x}", self.device, self.inode)
    }
}

/// How often a slot is created that is removed before it is locked.
const TRIES: usize = 4;

/// Creates a slot's directory where it is missing, and locks it.
pub(super) fn make_and_lock(directory: &Path) -> Option<OwnedFd> {
    for _ in 0..TRIES {
        files::make_dir(directory).ok()?;
        if let Some(locked) = open_and_lock(directory)
            && is_same_directory(&locked, directory)
        {
            return Some(locked);
        }
    }
    None
}

/// Opens a slot's directory and locks it while the descriptor is open. A directory that cannot be
/// locked is used without: then only its contents protect it.
fn open_and_lock(directory: &Path) -> Option<OwnedFd> {
    let opened: OwnedFd = File::open(directory).ok()?.into();
    let _not_locked = rustix::fs::flock(&opened, FlockOperation::NonBlockingLockExclusive);
    Some(opened)
}

/// Whether a running process holds the lock.
pub(super) fn is_locked(directory: &Path) -> bool {
    let Ok(opened) = File::open(directory) else {
        return false;
    };
    let locked = rustix::fs::flock(&opened, FlockOperation::NonBlockingLockExclusive);
    locked == Err(Errno::WOULDBLOCK)
}

/// Whether the path still names the directory that was opened.
pub(super) fn is_same_directory(opened: impl AsFd, path: &Path) -> bool {
    match (fstat(&opened), rustix::fs::stat(path)) {
        (Ok(opened), Ok(named)) => (opened.st_dev, opened.st_ino) == (named.st_dev, named.st_ino),
        (Err(_), _) | (_, Err(_)) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_claimed_as_long_as_its_descriptor_is_open() {
        let scratch = tempfile::tempdir().expect("a directory");
        let slot = scratch.path().join("slot");
        std::fs::create_dir(&slot).expect("made");
        assert!(!is_locked(&slot));
        let held = open_and_lock(&slot).expect("opened");
        assert!(is_locked(&slot));
        assert!(is_same_directory(&held, &slot));
        std::fs::remove_dir(&slot).expect("removed");
        assert!(!is_same_directory(&held, &slot));
        std::fs::create_dir(&slot).expect("made again");
        assert!(
            !is_same_directory(&held, &slot),
            "another one of the same name"
        );
        drop(held);
        assert!(!is_locked(&slot));
    }

    #[test]
    fn state_directories_have_names_of_their_own() {
        let (one, two) = (tempfile::tempdir(), tempfile::tempdir());
        let owner = |dir: &tempfile::TempDir| {
            let opened = File::open(dir.path()).expect("opened");
            SlotOwner::of(opened.as_fd()).expect("known").to_string()
        };
        let (one, two) = (one.expect("made"), two.expect("made"));
        assert_ne!(owner(&one), owner(&two));
        assert_eq!(owner(&one), owner(&one));
        assert!(!owner(&one).contains('-'));
    }
}
