//! The only way in which paths are followed here: with openat2(2) from a directory's descriptor
//! downwards, through no symbolic link and across no mount.

pub(crate) mod entry_stamp;

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{AtFlags, Dir, Mode, OFlags, ResolveFlags, Stat, openat2, statat};
use rustix::io::Errno;

use self::entry_stamp::EntryStamp;

/// How often a lookup is retried that a concurrent rename made uncertain (`EAGAIN`).
const TRIES: usize = 32;

/// A directory, and everything below it.
#[derive(Debug)]
pub(crate) struct BeneathRoot {
    fd: OwnedFd,
    /// The last parent opened: names come sorted.
    last_parent: Option<(Vec<u8>, OwnedFd)>,
}

/// An entry of a directory.
#[derive(Debug)]
pub(crate) struct StatEntry {
    pub(crate) name: Vec<u8>,
    pub(crate) stat: Stat,
}

impl BeneathRoot {
    /// Opens an absolute path without symbolic links.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let top = rustix::fs::open("/", OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
        let relative = path.strip_prefix("/").unwrap_or(path);
        let relative = if relative.as_os_str().is_empty() {
            Path::new(".")
        } else {
            relative
        };
        let resolve =
            ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        let fd = open_at(top.as_fd(), relative.as_os_str().as_bytes(), DIR, resolve)?;
        Ok(Self {
            fd,
            last_parent: None,
        })
    }

    pub(crate) fn stat(&self) -> io::Result<Stat> {
        Ok(rustix::fs::fstat(&self.fd)?)
    }

    /// Opens a relative path; the empty path is the directory itself.
    pub(crate) fn open_at(&self, path: &[u8], flags: OFlags) -> io::Result<OwnedFd> {
        let path = if path.is_empty() { b"." } else { path };
        open_at(self.fd.as_fd(), path, flags, BENEATH)
    }

    /// The parent directory of a path, and its last name.
    pub(crate) fn parent<'a, 'b>(
        &'a mut self,
        path: &'b [u8],
    ) -> io::Result<(BorrowedFd<'a>, &'b OsStr)> {
        let (parent, name) = split(path);
        if parent.is_empty() {
            return Ok((self.fd.as_fd(), OsStr::from_bytes(name)));
        }
        let is_cached = matches!(&self.last_parent, Some((known, _)) if known == parent);
        if !is_cached {
            let fd = self.open_at(parent, OFlags::PATH | OFlags::DIRECTORY)?;
            self.last_parent = Some((parent.to_vec(), fd));
        }
        let fd = self
            .last_parent
            .as_ref()
            .map_or(self.fd.as_fd(), |(_, fd)| fd.as_fd());
        Ok((fd, OsStr::from_bytes(name)))
    }

    /// The status of a path; none where it does not exist.
    pub(crate) fn stat_at(&mut self, path: &[u8]) -> io::Result<Option<Stat>> {
        if path.is_empty() {
            return self.stat().map(Some);
        }
        let found = self
            .parent(path)
            .and_then(|(dir, name)| Ok(statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)?));
        match found {
            Ok(stat) => Ok(Some(stat)),
            Err(error) if is_absent(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// As [`BeneathRoot::stat_at`], for comparison; a path across another mount counts as absent.
    pub(crate) fn stamp_at(&mut self, path: &[u8]) -> io::Result<Option<EntryStamp>> {
        Ok(self.stat_at(path)?.map(|stat| EntryStamp::of(&stat)))
    }

    /// The entries of a directory, at most `limit` and one more, sorted by name. Entries that
    /// vanish meanwhile are left out.
    pub(crate) fn list(&self, path: &[u8], limit: usize) -> io::Result<Vec<StatEntry>> {
        let fd = self.open_at(path, DIR)?;
        let mut entries = Vec::new();
        for entry in Dir::new(fd.try_clone()?)? {
            let entry = entry?;
            let name = entry.file_name();
            if name == c"." || name == c".." {
                continue;
            }
            match statat(&fd, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => entries.push(StatEntry {
                    name: name.to_bytes().to_vec(),
                    stat,
                }),
                Err(Errno::NOENT) => {}
                Err(error) => return Err(error.into()),
            }
            if entries.len() > limit {
                break;
            }
        }
        entries.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }
}

const DIR: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::CLOEXEC);
const BENEATH: ResolveFlags = ResolveFlags::BENEATH
    .union(ResolveFlags::NO_SYMLINKS)
    .union(ResolveFlags::NO_MAGICLINKS)
    .union(ResolveFlags::NO_XDEV);

fn open_at(
    dir: BorrowedFd<'_>,
    path: &[u8],
    flags: OFlags,
    resolve: ResolveFlags,
) -> io::Result<OwnedFd> {
    // Opening a FIFO or a device must not block.
    let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let flags = if flags.contains(OFlags::PATH) {
        flags
    } else {
        flags | OFlags::NONBLOCK | OFlags::NOCTTY
    };
    let mut tries = 0;
    loop {
        match openat2(dir, path, flags, Mode::empty(), resolve) {
            Err(Errno::AGAIN | Errno::INTR) if tries < TRIES => tries += 1,
            other => return Ok(other?),
        }
    }
}

/// Parent and last name of a relative path.
pub(crate) fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(at) => (&path[..at], &path[at + 1..]),
        None => (b"", path),
    }
}

/// Joins two relative paths.
pub(crate) fn join(parent: &[u8], name: &[u8]) -> Vec<u8> {
    if parent.is_empty() {
        return name.to_vec();
    }
    [parent, b"/", name].concat()
}

/// Whether an error means that the path does not exist, as far as a lookup without links can tell.
pub(crate) fn is_absent(error: &io::Error) -> bool {
    let number = error.raw_os_error().map(Errno::from_raw_os_error);
    matches!(
        number,
        Some(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::XDEV)
    )
}
