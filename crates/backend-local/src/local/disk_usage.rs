//! Measures what a directory has allocated, in one walk by descriptors: a command can make trees
//! that are deeper than a path may be long, and directories that not even their owner may read.

use std::collections::HashSet;
use std::ffi::{CStr, CString, OsStr};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, Dir, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

/// Entries a workspace may have for its growth to be limited; a walk of them takes seconds.
pub(super) const DISK_ENTRIES_MAX: u64 = 1_000_000;
/// The unit of `st_blocks` (stat(2)), in bytes.
pub(super) const BLOCK_BYTES: u64 = 512;
/// The most directories on the way down that are held open; those above them are opened again.
const OPEN_LEVELS_MAX: usize = 32;
/// The longest path that is named, in bytes: PATH_MAX.
const NAMED_PATH_BYTES: usize = 4_096;

/// Flags of a directory that is listed.
const LISTED: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);
/// Flags of a directory that is only a way to others.
const PASSED: OFlags = OFlags::PATH
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// What a directory has allocated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DiskUsage {
    /// The allocated bytes that were found.
    pub(super) bytes: u64,
    /// The first directory that could not be read.
    pub(super) unread: Option<UnreadDirectory>,
}

/// A directory whose content is not measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct UnreadDirectory {
    pub(super) path: PathBuf,
    pub(super) reason: String,
}

/// Who writes to a directory that is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Writers {
    /// Processes with this process's rights: what it can neither read nor write to, they cannot fill.
    Own,
    /// Processes with ids of their own, in a container.
    Any,
}

/// Allocated bytes of everything below a directory on its own file system, hard links counted once;
/// symbolic links are not followed.
pub(super) fn disk_usage(root: &Path, writers: Writers) -> io::Result<DiskUsage> {
    let top = rustix::fs::open(root, LISTED, Mode::empty())?;
    let stat = rustix::fs::fstat(&top)?;
    let mut walk = DiskWalk::new(root, writers, stat.st_dev);
    walk.enter(Vec::new(), top, &stat)?;
    while let Some(level) = walk.levels.last_mut() {
        let Some(name) = level.pending.pop() else {
            walk.leave();
            continue;
        };
        if level.directory.is_none() && !walk.reopen_last() {
            continue;
        }
        walk.descend(&name)?;
    }
    Ok(DiskUsage {
        bytes: walk.bytes,
        unread: walk.unread,
    })
}

/// A directory between the root and the one that is looked at.
struct WalkLevel {
    /// Its name in the level above; empty for the root.
    name: Vec<u8>,
    /// By which it is recognised when it is opened again.
    identity: Inode,
    directory: Option<OwnedFd>,
    /// Directories in it that are still to be measured.
    pending: Vec<CString>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Inode {
    device: u64,
    number: u64,
}

impl Inode {
    const fn of(stat: &Stat) -> Self {
        Self {
            device: stat.st_dev,
            number: stat.st_ino,
        }
    }
}

struct DiskWalk<'a> {
    root: &'a Path,
    writers: Writers,
    device: u64,
    bytes: u64,
    entries: u64,
    /// Inodes with several names that were counted.
    linked: HashSet<u64>,
    levels: Vec<WalkLevel>,
    unread: Option<UnreadDirectory>,
}

impl<'a> DiskWalk<'a> {
    fn new(root: &'a Path, writers: Writers, device: u64) -> Self {
        Self {
            root,
            writers,
            device,
            bytes: 0,
            entries: 0,
            linked: HashSet::new(),
            levels: Vec::new(),
            unread: None,
        }
    }

    /// Measures a directory of the last level.
    fn descend(&mut self, name: &CStr) -> io::Result<()> {
        let parent = self.levels.last().and_then(|it| it.directory.as_ref());
        let Some(parent) = parent else {
            return Ok(());
        };
        match rustix::fs::openat(parent, name, LISTED, Mode::empty()) {
            Ok(directory) => {
                let stat = rustix::fs::fstat(&directory)?;
                if stat.st_dev == self.device {
                    self.enter(name.to_bytes().to_vec(), directory, &stat)?;
                }
            }
            Err(error) if is_removed(error) => {}
            Err(error) if self.is_out_of_reach(parent.as_fd(), name, error) => {}
            Err(error) => self.note_unread(name.to_bytes(), error),
        }
        Ok(())
    }

    /// Counts the entries of a directory, and makes it the last level.
    fn enter(&mut self, name: Vec<u8>, directory: OwnedFd, stat: &Stat) -> io::Result<()> {
        let mut pending = Vec::new();
        let mut failed = None;
        for entry in Dir::new(directory.try_clone()?)? {
            let entry = match entry {
                Ok(entry) => entry,
                Err(error) if is_removed(error) => break,
                Err(error) => {
                    failed.get_or_insert(error);
                    break;
                }
            };
            if matches!(entry.file_name().to_bytes(), b"." | b"..") {
                continue;
            }
            let name = entry.file_name();
            match rustix::fs::statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => {
                    if self.count(&stat)? {
                        pending.push(name.to_owned());
                    }
                }
                Err(error) if is_removed(error) => {}
                // Where it may be listed and not searched.
                Err(error) => {
                    failed.get_or_insert(error);
                }
            }
        }
        if let Some(error) = failed {
            self.note_unread(&name, error);
        }
        if let Some(far) = self.levels.len().checked_sub(OPEN_LEVELS_MAX)
            && far > 0
        {
            self.levels[far].directory = None;
        }
        self.levels.push(WalkLevel {
            name,
            identity: Inode::of(stat),
            directory: Some(directory),
            pending,
        });
        Ok(())
    }

    /// Counts an entry; returns whether it is a directory to continue with.
    fn count(&mut self, stat: &Stat) -> io::Result<bool> {
        self.entries += 1;
        if self.entries > DISK_ENTRIES_MAX {
            let message = format!("more than {DISK_ENTRIES_MAX} entries");
            return Err(io::Error::new(io::ErrorKind::QuotaExceeded, message));
        }
        let is_directory = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
        if !is_directory && stat.st_nlink > 1 && !self.linked.insert(stat.st_ino) {
            return Ok(false);
        }
        self.bytes += stat.st_blocks.unsigned_abs() * BLOCK_BYTES;
        Ok(is_directory && stat.st_dev == self.device)
    }

    /// Ends the last level; the one above is opened through it where it was closed.
    fn leave(&mut self) {
        let (Some(left), Some(above)) = (self.levels.pop(), self.levels.last_mut()) else {
            return;
        };
        if above.directory.is_none()
            && let Some(directory) = left.directory
            && let Ok(parent) = rustix::fs::openat(&directory, c"..", PASSED, Mode::empty())
            && is_same(parent.as_fd(), above.identity)
        {
            above.directory = Some(parent);
        }
    }

    /// Opens the last level again, by the names from the root on, and returns whether it is still
    /// there. Levels that were moved away are left out, like what was removed.
    fn reopen_last(&mut self) -> bool {
        let mut opened: Option<OwnedFd> = None;
        let mut failed = None;
        for (depth, level) in self.levels.iter().enumerate().skip(1) {
            let from = opened.as_ref().or(self.levels[0].directory.as_ref());
            let next = from.ok_or(Errno::BADF).and_then(|from| {
                rustix::fs::openat(from, level.name.as_slice(), PASSED, Mode::empty())
            });
            match next {
                Ok(next) if is_same(next.as_fd(), level.identity) => opened = Some(next),
                Ok(_) => failed = Some((depth, Errno::NOENT)),
                Err(error) => failed = Some((depth, error)),
            }
            if failed.is_some() {
                break;
            }
        }
        if let Some((depth, error)) = failed {
            let lost = self.levels.drain(depth..).next();
            if let Some(lost) = lost.filter(|_| !is_removed(error)) {
                self.note_unread(&lost.name, error);
            }
        }
        if let Some(last) = self.levels.last_mut()
            && let Some(opened) = opened
        {
            last.directory = Some(opened);
        }
        failed.is_none()
    }

    /// Whether a directory cannot be read because it is another user's, who did not let this one
    /// write to it either: no own process can have filled it.
    fn is_out_of_reach(&self, parent: BorrowedFd<'_>, name: &CStr, error: Errno) -> bool {
        if self.writers == Writers::Any || error != Errno::ACCESS {
            return false;
        }
        let stat = rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW);
        let own = rustix::process::geteuid().as_raw();
        let may = rustix::fs::accessat(
            parent,
            name,
            Access::WRITE_OK | Access::EXEC_OK,
            AtFlags::EACCESS,
        );
        stat.is_ok_and(|it| it.st_uid != own) && may.is_err()
    }

    /// Keeps the first directory that could not be read, by its name in the last level. Where its
    /// path is too long to be named, it is one above.
    fn note_unread(&mut self, name: &[u8], error: Errno) {
        if self.unread.is_some() {
            return;
        }
        let above = self.levels.iter().map(|it| it.name.as_slice());
        let mut path = self.root.to_owned();
        for name in above.chain([name]).filter(|it| !it.is_empty()) {
            if path.as_os_str().len() + name.len() >= NAMED_PATH_BYTES {
                break;
            }
            path.push(OsStr::from_bytes(name));
        }
        self.unread = Some(UnreadDirectory {
            path,
            reason: io::Error::from(error).to_string(),
        });
    }
}

fn is_same(directory: BorrowedFd<'_>, identity: Inode) -> bool {
    rustix::fs::fstat(directory).is_ok_and(|it| Inode::of(&it) == identity)
}

/// Whether a directory, or an entry, was removed or replaced since it was listed.
fn is_removed(error: Errno) -> bool {
    matches!(error, Errno::NOENT | Errno::NOTDIR | Errno::LOOP)
}

#[cfg(test)]
#[path = "disk_usage_tests.rs"]
mod tests;
