//! Copies entries out of the upper layer. The command wrote it and is not trusted: only regular
//! files, directories and links are copied, without privileges and without overlay attributes.

use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::fs::{
    AtFlags, Gid, Mode, OFlags, SeekFrom as Spot, Timespec, Timestamps, Uid, chownat, fchmod,
    fchown, fgetxattr, flistxattr, fremovexattr, fsetxattr, fstat, ftruncate, futimens,
    ioctl_ficlone, linkat, mkdirat, openat, statat, symlinkat,
};
use rustix::io::Errno;

use super::compare::read_link;
use crate::openat2::BeneathRoot;
use crate::openat2::entry_stamp::{EntryKind, EntryStamp, MODE_BITS, entry_kind};

/// The prefix of overlay attributes.
const OVERLAY_XATTR_PREFIX: &[u8] = b"user.overlay.";
/// The prefix of user attributes (xattr(7)); no others are copied.
const USER_XATTR_PREFIX: &[u8] = b"user.";
/// The attribute of file capabilities.
const CAPABILITY: &[u8] = b"security.capability";
/// The longest attribute list and the longest value, in bytes (xattr(7)).
const ATTRIBUTE_BYTES: usize = 64 * 1024;
/// A buffer that holds the attribute list of most files, in bytes.
const FEW_ATTRIBUTES_BYTES: usize = 512;
/// The mode of a new directory until everything is in it.
const STAGING_MODE: u32 = 0o700;

/// Creates a copy of `path` of the upper layer as `name` in `dir` of the host, and returns its
/// inode. On one mount it is a hard link, so that nothing is copied.
pub(super) fn stage(
    upper: &mut BeneathRoot,
    path: &[u8],
    new: &EntryStamp,
    dir: BorrowedFd<'_>,
    name: &str,
) -> io::Result<u64> {
    match new.kind {
        EntryKind::Directory => stage_directory(upper, path, dir, name)?,
        EntryKind::Symlink => stage_link(upper, path, dir, name)?,
        EntryKind::File => stage_file(upper, path, new, dir, name)?,
        EntryKind::Special => return Err(Errno::NOTSUP.into()),
    }
    let staged = statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(EntryStamp::of(&staged).ino)
}

fn stage_directory(
    upper: &mut BeneathRoot,
    path: &[u8],
    dir: BorrowedFd<'_>,
    name: &str,
) -> io::Result<()> {
    mkdirat(dir, name, Mode::from_raw_mode(STAGING_MODE))?;
    copy_owner(upper, path, dir, name)
}

fn stage_link(
    upper: &mut BeneathRoot,
    path: &[u8],
    dir: BorrowedFd<'_>,
    name: &str,
) -> io::Result<()> {
    let target = read_link(upper, path)?;
    symlinkat(target.as_slice(), dir, name)?;
    copy_owner(upper, path, dir, name)
}

/// Gives a new name the owner that its original in the upper layer has.
fn copy_owner(
    upper: &mut BeneathRoot,
    path: &[u8],
    dir: BorrowedFd<'_>,
    name: &str,
) -> io::Result<()> {
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    let (parent, last) = upper.parent(path)?;
    let stat = statat(parent, last, AtFlags::SYMLINK_NOFOLLOW)?;
    let (uid, gid) = (Uid::from_raw(stat.st_uid), Gid::from_raw(stat.st_gid));
    Ok(chownat(
        dir,
        name,
        Some(uid),
        Some(gid),
        AtFlags::SYMLINK_NOFOLLOW,
    )?)
}

fn stage_file(
    upper: &mut BeneathRoot,
    path: &[u8],
    new: &EntryStamp,
    dir: BorrowedFd<'_>,
    name: &str,
) -> io::Result<()> {
    let fd = open_file(upper, path, new)?;
    let mode = Mode::from_raw_mode(new.mode & MODE_BITS);
    if new.mode & !MODE_BITS != 0 {
        fchmod(&fd, mode)?;
    }
    strip_attributes(&fd)?;
    let (parent, last) = upper.parent(path)?;
    match linkat(parent, last, dir, name, AtFlags::empty()) {
        // The name may refer to another file than the one that was stripped.
        Ok(()) if is_same_file(dir, name, &fd)? => Ok(()),
        Ok(()) => Err(Errno::STALE.into()),
        // Another mount or file system, too many links, or hard links are not supported.
        Err(Errno::XDEV | Errno::MLINK | Errno::PERM | Errno::NOTSUP) => {
            copy_file(File::from(fd), mode, dir, name)
        }
        Err(error) => Err(error.into()),
    }
}

fn is_same_file(dir: BorrowedFd<'_>, name: &str, fd: &OwnedFd) -> io::Result<bool> {
    let (there, here) = (statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)?, fstat(fd)?);
    Ok((there.st_ino, there.st_dev) == (here.st_ino, here.st_dev))
}

/// Opens a regular file, also one that its owner, this process, may not read.
pub(super) fn open_file(upper: &BeneathRoot, path: &[u8], new: &EntryStamp) -> io::Result<OwnedFd> {
    const READ: u32 = 0o400;
    let fd = match upper.open_at(path, OFlags::RDONLY) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            chmod(upper, path, new.mode & MODE_BITS | READ)?;
            let opened = upper.open_at(path, OFlags::RDONLY);
            chmod(upper, path, new.mode & MODE_BITS)?;
            opened?
        }
        other => other?,
    };
    if entry_kind(&fstat(&fd)?) == EntryKind::File {
        Ok(fd)
    } else {
        Err(Errno::STALE.into())
    }
}

/// Changes the mode of a path of the layer; a link is not followed.
pub(super) fn chmod(root: &BeneathRoot, path: &[u8], mode: u32) -> io::Result<()> {
    let fd = root.open_at(path, OFlags::PATH)?;
    if entry_kind(&fstat(&fd)?) == EntryKind::Symlink {
        return Err(Errno::LOOP.into());
    }
    let path = format!("/proc/self/fd/{}", fd.as_raw_fd());
    Ok(rustix::fs::chmod(path, Mode::from_raw_mode(mode))?)
}

/// Removes attributes that must not reach the host.
fn strip_attributes(fd: &OwnedFd) -> io::Result<()> {
    for name in list_attributes(fd)? {
        if name.starts_with(OVERLAY_XATTR_PREFIX) || name == CAPABILITY {
            match fremovexattr(fd, name.as_slice()) {
                // An attribute that cannot be removed means nothing outside of an overlay.
                Ok(()) | Err(Errno::NODATA) => {}
                Err(Errno::ACCESS | Errno::PERM) if name != CAPABILITY => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
    Ok(())
}

/// Whether a path has overlay attributes; one that cannot be read has none.
pub(super) fn is_marked(root: &BeneathRoot, path: &[u8]) -> bool {
    let opened = root.open_at(path, OFlags::RDONLY);
    let names = opened.and_then(list_attributes).unwrap_or_default();
    names
        .iter()
        .any(|name| name.starts_with(OVERLAY_XATTR_PREFIX))
}

fn list_attributes(fd: impl AsFd) -> io::Result<Vec<Vec<u8>>> {
    let mut list = vec![0; FEW_ATTRIBUTES_BYTES];
    let len = loop {
        match flistxattr(&fd, list.as_mut_slice()) {
            Ok(len) => break len,
            Err(Errno::RANGE) if list.len() < ATTRIBUTE_BYTES => list.resize(ATTRIBUTE_BYTES, 0),
            Err(Errno::NOTSUP) => break 0,
            Err(error) => return Err(error.into()),
        }
    };
    let names = list[..len].split(|byte| *byte == 0);
    Ok(names
        .filter(|it| !it.is_empty())
        .map(<[u8]>::to_vec)
        .collect())
}

/// Copies bytes, holes, owner, attributes, mode and times.
fn copy_file(mut from: File, mode: Mode, dir: BorrowedFd<'_>, name: &str) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut to = File::from(openat(dir, name, flags, Mode::from_raw_mode(0o600))?);
    let stat = fstat(&from)?;
    if ioctl_ficlone(&to, &from).is_err() {
        copy_data(&mut from, &mut to)?;
    }
    if rustix::process::geteuid().is_root() {
        let (uid, gid) = (Uid::from_raw(stat.st_uid), Gid::from_raw(stat.st_gid));
        fchown(&to, Some(uid), Some(gid))?;
    }
    copy_attributes(&from, &to)?;
    fchmod(&to, mode)?;
    let time = |tv_sec, tv_nsec| Timespec { tv_sec, tv_nsec };
    let nanos = |value: u64| i64::try_from(value).unwrap_or(0);
    futimens(
        &to,
        &Timestamps {
            last_access: time(stat.st_atime, nanos(stat.st_atime_nsec)),
            last_modification: time(stat.st_mtime, nanos(stat.st_mtime_nsec)),
        },
    )?;
    Ok(())
}

/// Copies data; holes stay holes.
fn copy_data(from: &mut File, to: &mut File) -> io::Result<()> {
    let len = from.metadata()?.len();
    ftruncate(&*to, len)?;
    let mut at = 0;
    while at < len {
        let start = match rustix::fs::seek(&*from, Spot::Data(at)) {
            Ok(start) => start,
            Err(Errno::NXIO) => break,
            Err(error) => return Err(error.into()),
        };
        let end = rustix::fs::seek(&*from, Spot::Hole(start))?.min(len);
        from.seek(SeekFrom::Start(start))?;
        to.seek(SeekFrom::Start(start))?;
        let length = end.saturating_sub(start);
        let copied = io::copy(&mut io::Read::take(&mut *from, length), to)?;
        if copied < length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        at = end;
    }
    Ok(())
}

/// Copies user attributes; the target may not support any.
fn copy_attributes(from: &File, to: &File) -> io::Result<()> {
    let mut value = Vec::new();
    for name in list_attributes(from)? {
        if !name.starts_with(USER_XATTR_PREFIX) || name.starts_with(OVERLAY_XATTR_PREFIX) {
            continue;
        }
        value.resize(ATTRIBUTE_BYTES, 0);
        let len = fgetxattr(from, name.as_slice(), value.as_mut_slice())?;
        match fsetxattr(
            to,
            name.as_slice(),
            &value[..len],
            rustix::fs::XattrFlags::empty(),
        ) {
            Ok(()) | Err(Errno::NOTSUP) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
