//! Deletes a layer. The command chose its depth, its names and its modes, so it is deleted without
//! recursion and with few descriptors: a directory that is not empty is moved to the top and
//! deleted later.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{
    AtFlags, Dir, Mode, OFlags, RenameFlags, openat, renameat, renameat_with, unlinkat,
};
use rustix::io::Errno;

use super::error::is_disk_full;

/// The prefix of directories moved to the top.
const PENDING_PREFIX: &str = "gone.";
const OPEN_FLAGS: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// Deletes directories of `store` with everything in them; missing ones are no error. The rest of
/// an interrupted call is deleted too.
pub(super) fn remove_layers(store: &Path, names: &[&str]) -> io::Result<()> {
    let store = rustix::fs::open(store, OPEN_FLAGS, Mode::empty())?;
    let mut queue = RemovalQueue { store, next: 0 };
    let mut pending = queue.find_leftovers()?;
    pending.extend(names.iter().map(|name| (*name).to_owned()));
    while let Some(name) = pending.pop() {
        queue.remove_directory(&name, &mut pending)?;
    }
    Ok(())
}

/// Gives a directory of `store` the name of one whose removal was interrupted: [`remove_layers`]
/// removes it. This needs no space on the disk.
pub(super) fn detach_layer(store: &Path, name: &str) -> io::Result<()> {
    let store = rustix::fs::open(store, OPEN_FLAGS, Mode::empty())?;
    let mut queue = RemovalQueue { store, next: 0 };
    // Numbers the next name after those that are there.
    let _leftovers = queue.find_leftovers()?;
    let detached = format!("{PENDING_PREFIX}{}", queue.next);
    let flags = RenameFlags::NOREPLACE;
    match renameat_with(&queue.store, name, &queue.store, detached.as_str(), flags) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

struct RemovalQueue {
    store: OwnedFd,
    /// The number of the next moved directory.
    next: u64,
}

impl RemovalQueue {
    fn find_leftovers(&mut self) -> io::Result<Vec<String>> {
        let mut left = Vec::new();
        for entry in Dir::read_from(&self.store)? {
            let entry = entry?;
            let Ok(name) = entry.file_name().to_str() else {
                continue;
            };
            if let Some(number) = name.strip_prefix(PENDING_PREFIX) {
                self.next = self.next.max(number.parse().map_or(0, |it: u64| it + 1));
                left.push(name.to_owned());
            }
        }
        Ok(left)
    }

    fn remove_directory(&mut self, name: &str, pending: &mut Vec<String>) -> io::Result<()> {
        let dir = match openat(&self.store, name, OPEN_FLAGS, Mode::empty()) {
            Ok(dir) => dir,
            Err(Errno::NOENT) => return Ok(()),
            Err(Errno::ACCESS) => {
                make_accessible(self.store.as_fd(), name.as_bytes())?;
                openat(&self.store, name, OPEN_FLAGS, Mode::empty())?
            }
            Err(error) => return Err(error.into()),
        };
        rustix::fs::fchmod(&dir, Mode::RWXU)?;
        let mut moved = Vec::new();
        for entry in Dir::read_from(&dir)? {
            let entry = entry?;
            let entry = entry.file_name().to_bytes();
            if entry == b"." || entry == b".." {
                continue;
            }
            match self.remove_entry(dir.as_fd(), entry) {
                Ok(up) => moved.extend(up),
                // The disk has no space for more names: those that were moved are deleted first.
                Err(error) if is_disk_full(&error) && !moved.is_empty() => {
                    pending.push(name.to_owned());
                    pending.append(&mut moved);
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
        }
        pending.append(&mut moved);
        match unlinkat(&self.store, name, AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            // A directory may list an entry late when others are removed during the reading.
            Err(Errno::NOTEMPTY) => {
                pending.push(name.to_owned());
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Removes an entry; a directory that is not empty is moved to the top and its new name
    /// returned.
    fn remove_entry(&mut self, dir: BorrowedFd<'_>, name: &[u8]) -> io::Result<Option<String>> {
        match unlinkat(dir, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => return Ok(None),
            Err(Errno::ISDIR) => {}
            Err(error) => return Err(error.into()),
        }
        match unlinkat(dir, name, AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT) => return Ok(None),
            Err(Errno::NOTEMPTY) => {}
            Err(error) => return Err(error.into()),
        }
        make_accessible(dir, name)?;
        let up = format!("{PENDING_PREFIX}{}", self.next);
        self.next += 1;
        renameat(dir, name, &self.store, up.as_str())?;
        Ok(Some(up))
    }
}

/// Opens a directory to its owner, this process. No link is followed.
fn make_accessible(dir: BorrowedFd<'_>, name: &[u8]) -> io::Result<()> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let fd = openat(dir, name, flags, Mode::empty())?;
    let path = format!("/proc/self/fd/{}", fd.as_raw_fd());
    Ok(rustix::fs::chmod(path, Mode::RWXU)?)
}
