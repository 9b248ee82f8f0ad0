//! Directories that only their owner can list, write to or replace.
//!
//! A path is walked from the root, each component opened without following links. Every directory
//! on the way, and every link, must belong to this user or to root, and be writable by no other; a
//! sticky directory such as `/tmp` is accepted, since only owners can replace its entries. Missing
//! directories are created with mode 0700.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Component, Path, PathBuf};
use std::sync::OnceLock;

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use rustix::process::{getegid, geteuid};

/// The mode of private directories.
const PRIVATE: Mode = Mode::RWXU;
const STICKY: u32 = 0o1000;
const GROUP_WRITE: u32 = 0o020;
const OTHERS_WRITE: u32 = 0o002;
const GROUP_AND_OTHERS: u32 = 0o077;
/// The owner of files whose user id is not mapped in this user namespace (user_namespaces(7)).
const UNMAPPED: u32 = 65_534;
/// How many symbolic links are followed, the kernel's own bound (path_resolution(7)).
const LINKS_MAX: usize = 40;
/// The longest target of a link, in bytes.
const TARGET_BYTES: usize = 4_096;
/// How many random names are tried for a unique directory.
const NAMES_TRIED: usize = 16;
/// How many random bytes such a name has.
const NAME_BYTES: usize = 10;

/// Creates the directory and its missing parents, and makes sure that it is private; one that
/// others may enter is restricted to its owner.
///
/// # Errors
/// When it belongs to another user, another user could replace it, or it cannot be created.
pub fn ensure(path: &Path) -> io::Result<()> {
    open(path).map(drop)
}

/// As [`ensure`], and opens the directory.
///
/// # Errors
/// As [`ensure`].
pub fn open(path: &Path) -> io::Result<OwnedFd> {
    let (directory, path_shown) = PathWalker::from_root(path)?.into_directory()?;
    let stat = rustix::fs::fstat(&directory)?;
    let us = geteuid().as_raw();
    if stat.st_uid != us {
        let owner = stat.st_uid;
        return Err(permission_denied(
            &path_shown,
            &format!("belongs to user {owner}, not to user {us}"),
        ));
    }
    if stat.st_mode & GROUP_AND_OTHERS != 0 {
        rustix::fs::chmodat(&directory, ".", PRIVATE, AtFlags::empty())?;
    }
    Ok(directory)
}

/// Creates a new directory in `parent`, under an unpredictable name that begins with `prefix`, and
/// returns its path.
///
/// # Errors
/// When another user could replace `parent` or its entries, or the directory cannot be created.
pub fn create_unique(parent: &Path, prefix: &str) -> io::Result<PathBuf> {
    let (directory, shown) = PathWalker::from_root(parent)?.into_directory()?;
    check_trusted(&rustix::fs::fstat(&directory)?, &shown)?;
    for _ in 0..NAMES_TRIED {
        let name = unique_name(prefix)?;
        match rustix::fs::mkdirat(&directory, &name, PRIVATE) {
            Ok(()) => return Ok(shown.join(name)),
            Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// An unpredictable name that begins with `prefix`.
///
/// # Errors
/// As getrandom(2).
pub fn unique_name(prefix: &str) -> io::Result<String> {
    let mut bytes = [0; NAME_BYTES];
    rustix::rand::getrandom(&mut bytes[..], rustix::rand::GetRandomFlags::empty())?;
    Ok(prefix.to_owned() + &ostler_model::lower_hex(&bytes))
}

/// A walk along a path, component by component.
struct PathWalker {
    directory: OwnedFd,
    /// The path reached, without links.
    path: PathBuf,
    remaining: VecDeque<OsString>,
    links: usize,
}

impl PathWalker {
    fn from_root(path: &Path) -> io::Result<Self> {
        let absolute = std::path::absolute(path)?;
        Ok(Self {
            directory: root()?,
            path: PathBuf::from("/"),
            remaining: components(&absolute),
            links: 0,
        })
    }

    /// Opens the last directory, creating it where it is missing, and returns its path without
    /// links.
    fn into_directory(mut self) -> io::Result<(OwnedFd, PathBuf)> {
        while let Some(part) = self.remaining.pop_front() {
            check_trusted(&rustix::fs::fstat(&self.directory)?, &self.path)?;
            self.descend(&part)?;
        }
        Ok((self.directory, self.path))
    }

    fn descend(&mut self, part: &OsStr) -> io::Result<()> {
        if part == ".." {
            self.path.pop();
            self.directory = open_dir_at(&self.directory, part)?;
            return Ok(());
        }
        match open_dir_at(&self.directory, part) {
            Ok(directory) => self.enter(directory, part),
            Err(Errno::NOENT) => {
                match rustix::fs::mkdirat(&self.directory, part, PRIVATE) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(errno) => return Err(self.failed(part, errno)),
                }
                let made = open_dir_at(&self.directory, part);
                let made = made.map_err(|errno| self.failed(part, errno))?;
                self.enter(made, part)
            }
            Err(Errno::NOTDIR | Errno::LOOP) => self.follow(part),
            Err(errno) => Err(self.failed(part, errno)),
        }
    }

    fn enter(&mut self, directory: OwnedFd, part: &OsStr) -> io::Result<()> {
        self.directory = directory;
        self.path.push(part);
        Ok(())
    }

    /// Follows a link, if only we or root can have created it.
    fn follow(&mut self, part: &OsStr) -> io::Result<()> {
        let link = rustix::fs::statat(&self.directory, part, AtFlags::SYMLINK_NOFOLLOW)?;
        let link_path = self.path.join(part);
        if FileType::from_raw_mode(link.st_mode) != FileType::Symlink {
            return Err(permission_denied(&link_path, "is no directory"));
        }
        if !is_ours_or_roots(&link) {
            let owner = link.st_uid;
            return Err(permission_denied(
                &link_path,
                &format!("is a link of user {owner}"),
            ));
        }
        self.links += 1;
        if self.links > LINKS_MAX {
            return Err(Errno::LOOP.into());
        }
        let target = rustix::fs::readlinkat(&self.directory, part, Vec::new())?;
        if target.as_bytes().len() > TARGET_BYTES {
            return Err(Errno::NAMETOOLONG.into());
        }
        let target = PathBuf::from(OsString::from_vec(target.into_bytes()));
        if target.is_absolute() {
            self.directory = root()?;
            self.path = PathBuf::from("/");
        }
        for part in components(&target).into_iter().rev() {
            self.remaining.push_front(part);
        }
        Ok(())
    }

    fn failed(&self, part: &OsStr, errno: Errno) -> io::Error {
        let error = io::Error::from(errno);
        let path = self.path.join(part);
        io::Error::new(error.kind(), format!("{}: {error}", path.display()))
    }
}

fn root() -> io::Result<OwnedFd> {
    Ok(rustix::fs::openat(
        CWD,
        "/",
        directory_flags(),
        Mode::empty(),
    )?)
}

fn open_dir_at(directory: &OwnedFd, part: &OsStr) -> Result<OwnedFd, Errno> {
    let flags = directory_flags() | OFlags::NOFOLLOW;
    rustix::fs::openat(directory, part, flags, Mode::empty())
}

fn directory_flags() -> OFlags {
    OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC
}

fn components(path: &Path) -> VecDeque<OsString> {
    let named = path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some(OsString::from("..")),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    });
    named.collect()
}

/// Checks that only this user and root can replace the entries of a directory.
fn check_trusted(stat: &Stat, path: &Path) -> io::Result<()> {
    let is_sticky = stat.st_mode & STICKY != 0;
    if !is_ours_or_roots(stat) {
        let owner = stat.st_uid;
        return Err(permission_denied(
            path,
            &format!("belongs to user {owner}, who can replace what is in it"),
        ));
    }
    if is_sticky {
        return Ok(());
    }
    if stat.st_mode & OTHERS_WRITE != 0 {
        return Err(permission_denied(path, "can be written by everybody"));
    }
    // Many systems give each user a group of their own.
    let own_group = stat.st_gid == getegid().as_raw() || stat.st_gid == 0;
    if stat.st_mode & GROUP_WRITE != 0 && !own_group {
        let group = stat.st_gid;
        return Err(permission_denied(
            path,
            &format!("can be written by group {group}"),
        ));
    }
    Ok(())
}

fn is_ours_or_roots(stat: &Stat) -> bool {
    let owner = stat.st_uid;
    owner == 0 || owner == geteuid().as_raw() || (owner == UNMAPPED && !is_root_mapped())
}

/// Whether root's user id is mapped in our user namespace. Where it is not, everything that root
/// owns appears to belong to the overflow user.
fn is_root_mapped() -> bool {
    static MAPPED: OnceLock<bool> = OnceLock::new();
    *MAPPED.get_or_init(|| {
        let map = std::fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
        let first = |line: &str| line.split_whitespace().next() == Some("0");
        map.is_empty() || map.lines().any(first)
    })
}

fn permission_denied(path: &Path, reason: &str) -> io::Error {
    let message = format!("{} {reason}", path.display());
    io::Error::new(io::ErrorKind::PermissionDenied, message)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, lchown, symlink};

    use tempfile::TempDir;

    use super::*;

    const STRANGER: u32 = 12_345;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).expect("there").mode() & 0o7777
    }

    fn set(path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).expect("set");
    }

    fn why(path: &Path) -> String {
        ensure(path).expect_err("refused").to_string()
    }

    #[test]
    fn what_is_missing_is_made_for_us_alone_and_what_is_open_closed() {
        let root = TempDir::new().expect("a directory");
        let path = root.path().join("a/b");
        ensure(&path).expect("made");
        assert_eq!(
            (mode(&path), mode(path.parent().expect("one"))),
            (0o700, 0o700)
        );
        set(&path, 0o755);
        ensure(&path).expect("closed");
        assert_eq!(mode(&path), 0o700);
    }

    #[test]
    fn a_file_is_no_directory() {
        let root = TempDir::new().expect("a directory");
        fs::write(root.path().join("file"), "").expect("written");
        assert!(why(&root.path().join("file")).contains("is no directory"));
        assert!(why(&root.path().join("file/below")).contains("is no directory"));
    }

    #[test]
    fn our_own_links_are_followed() {
        let root = TempDir::new().expect("a directory");
        fs::create_dir(root.path().join("there")).expect("made");
        symlink("there", root.path().join("link")).expect("linked");
        ensure(&root.path().join("link/below")).expect("made");
        assert!(root.path().join("there/below").is_dir());
        symlink("circle", root.path().join("circle")).expect("linked");
        assert!(ensure(&root.path().join("circle")).is_err());
    }

    #[test]
    fn directories_that_others_write_to_are_no_way_unless_they_are_sticky() {
        let root = TempDir::new().expect("a directory");
        let open = root.path().join("open");
        fs::create_dir(&open).expect("made");
        set(&open, 0o777);
        assert!(why(&open.join("ours")).contains("can be written by everybody"));
        assert!(create_unique(&open, "ours-").is_err());
        set(&open, 0o1777);
        ensure(&open.join("ours")).expect("made");
        let unique = create_unique(&open, "ours-").expect("made");
        assert_eq!(mode(&unique), 0o700);
        assert_ne!(unique, create_unique(&open, "ours-").expect("made"));
    }

    #[test]
    fn directories_and_links_of_other_users_are_refused() {
        if !geteuid().is_root() {
            return;
        }
        let root = TempDir::new().expect("a directory");
        let shared = root.path().join("shared");
        fs::create_dir(&shared).expect("made");
        set(&shared, 0o1777);
        let (theirs, link) = (shared.join("theirs"), shared.join("link"));
        fs::create_dir(&theirs).expect("made");
        chown(&theirs, Some(STRANGER), None).expect("given away");
        let ours = root.path().join("ours");
        fs::create_dir(&ours).expect("made");
        symlink(&ours, &link).expect("linked");
        lchown(&link, Some(STRANGER), None).expect("given away");
        assert!(why(&theirs).contains("belongs to user 12345"));
        assert!(why(&theirs.join("below")).contains("belongs to user 12345"));
        assert!(why(&link).contains("is a link of user 12345"));
        assert!(!ours.join("below").exists());
        let group = root.path().join("group");
        fs::create_dir(&group).expect("made");
        set(&group, 0o770);
        chown(&group, None, Some(STRANGER)).expect("given away");
        assert!(why(&group.join("below")).contains("can be written by group 12345"));
    }
}
