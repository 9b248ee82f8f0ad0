//! The end of a layer. The command chose its depth, its names and its modes, so that it is
//! taken apart without recursion and with few descriptors: a directory that is not empty is
//! moved up and waits its turn.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, Dir, Mode, OFlags, openat, renameat, unlinkat};
use rustix::io::Errno;

/// What directories are called that wait.
const WAITING: &str = "gone.";
const OPENED: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// Removes directories of `store` with everything in them; ones that are not there are gone.
/// What an earlier call left behind goes with them.
pub(super) fn layers(store: &Path, names: &[&str]) -> io::Result<()> {
    let store = rustix::fs::open(store, OPENED, Mode::empty())?;
    let mut queue = Queue { store, next: 0 };
    let mut waiting = queue.left_behind()?;
    waiting.extend(names.iter().map(|name| (*name).to_owned()));
    while let Some(name) = waiting.pop() {
        queue.take_apart(&name, &mut waiting)?;
    }
    Ok(())
}

struct Queue {
    store: OwnedFd,
    /// The number of the next one that waits.
    next: u64,
}

impl Queue {
    fn left_behind(&mut self) -> io::Result<Vec<String>> {
        let mut left = Vec::new();
        for entry in Dir::read_from(&self.store)? {
            let entry = entry?;
            let Ok(name) = entry.file_name().to_str() else {
                continue;
            };
            if let Some(number) = name.strip_prefix(WAITING) {
                self.next = self.next.max(number.parse().map_or(0, |it: u64| it + 1));
                left.push(name.to_owned());
            }
        }
        Ok(left)
    }

    fn take_apart(&mut self, name: &str, waiting: &mut Vec<String>) -> io::Result<()> {
        let dir = match openat(&self.store, name, OPENED, Mode::empty()) {
            Ok(dir) => dir,
            Err(Errno::NOENT) => return Ok(()),
            Err(Errno::ACCESS) => {
                unlock(self.store.as_fd(), name.as_bytes())?;
                openat(&self.store, name, OPENED, Mode::empty())?
            }
            Err(error) => return Err(error.into()),
        };
        rustix::fs::fchmod(&dir, Mode::RWXU)?;
        for entry in Dir::read_from(&dir)? {
            let entry = entry?;
            let entry = entry.file_name().to_bytes();
            if entry != b"." && entry != b".." {
                waiting.extend(self.take_out(dir.as_fd(), entry)?);
            }
        }
        match unlinkat(&self.store, name, AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            // A directory may show an entry late when others vanish below a reader.
            Err(Errno::NOTEMPTY) => {
                waiting.push(name.to_owned());
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Removes an entry; a directory that is not empty is moved up and named.
    fn take_out(&mut self, dir: BorrowedFd<'_>, name: &[u8]) -> io::Result<Option<String>> {
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
        unlock(dir, name)?;
        let up = format!("{WAITING}{}", self.next);
        self.next += 1;
        renameat(dir, name, &self.store, up.as_str())?;
        Ok(Some(up))
    }
}

/// Opens a directory that its owner, we ourselves, closed. No link is followed.
fn unlock(dir: BorrowedFd<'_>, name: &[u8]) -> io::Result<()> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let fd = openat(dir, name, flags, Mode::empty())?;
    let path = format!("/proc/self/fd/{}", fd.as_raw_fd());
    Ok(rustix::fs::chmod(path, Mode::RWXU)?)
}
