//! Directories that Ostler created, and their removal with everything in them, and with nothing else.
//!
//! A directory is known by its inode and its creation time (`stx_btime` of statx(2)), not by its path: a link, a mount or
//! another directory in its place is left alone. Below it, links are removed and never followed, and
//! mount points, and entries of other users, stay.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::Path;

use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, ResolveFlags, StatxFlags, mkdirat, openat2,
    renameat, statx, unlinkat,
};
use rustix::io::Errno;
use rustix::process::geteuid;

use crate::private_dir;

/// How deep directories are descended into, each with one open descriptor: deeper ones are moved up.
const DEPTH_MAX: usize = 32;
/// How often a tree is walked: each time, what lies within [`DEPTH_MAX`] is removed.
const PASSES_MAX: usize = 100_000;
/// How many entries that stay are named.
const NAMED_MAX: usize = 5;

/// The identity of a directory that stays the same when it is renamed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DirIdentity {
    /// Its inode number.
    pub inode: u64,
    /// When it was created, in nanoseconds since 1970; none where the file system does not record it.
    pub btime_ns: Option<i64>,
}

/// What is in the place of a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DirPlace {
    /// The directory itself.
    Same,
    /// Nothing.
    Absent,
    /// Something else: a link, a mount, or another directory.
    Replaced,
}

/// What the removal of a directory left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DirRemoval {
    /// It was removed with everything in it.
    Removed,
    /// It was not there.
    Absent,
    /// Something else is in its place, and was left alone.
    Replaced,
    /// It was emptied except for these entries, which belong to others or are mounted.
    Kept {
        /// How many.
        count: u64,
        /// The names of the first ones.
        names: Vec<String>,
    },
}

/// Creates the directory `name`, for this user alone, in a private directory `parent`.
///
/// # Errors
/// As [`private_dir::open`]; when there is an entry of this name.
pub fn create(parent: &Path, name: &str) -> io::Result<DirIdentity> {
    let parent = private_dir::open(parent)?;
    mkdirat(&parent, name, Mode::RWXU)?;
    let made = open_at(&parent, &c_name(name)?, OFlags::PATH)?;
    Ok(identity(&made)?)
}

/// The identity of the directory at `path`.
///
/// # Errors
/// As openat(2) and statx(2).
pub fn identify(path: &Path) -> io::Result<DirIdentity> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = rustix::fs::openat(CWD, path, flags, Mode::empty())?;
    Ok(identity(&opened)?)
}

/// What is at `parent/name`, where a directory with this identity was created.
///
/// # Errors
/// As openat(2) and statx(2).
pub fn inspect(parent: &Path, name: &str, known: DirIdentity) -> io::Result<DirPlace> {
    let Some(parent) = open_parent(parent)? else {
        return Ok(DirPlace::Absent);
    };
    match open_at(&parent, &c_name(name)?, OFlags::PATH) {
        Ok(found) if identity(&found)? == known => Ok(DirPlace::Same),
        Ok(_) | Err(Errno::LOOP | Errno::NOTDIR | Errno::XDEV) => Ok(DirPlace::Replaced),
        Err(Errno::NOENT) => Ok(DirPlace::Absent),
        Err(error) => Err(error.into()),
    }
}

/// Removes the directory `parent/name`, if it is the one with this identity, and all in it that
/// belongs to this user and is not mounted.
///
/// # Errors
/// When entries cannot be listed or removed for another reason.
pub fn remove(parent: &Path, name: &str, known: DirIdentity) -> io::Result<DirRemoval> {
    let Some(parent) = open_parent(parent)? else {
        return Ok(DirRemoval::Absent);
    };
    let name = c_name(name)?;
    let top = match open_listed(&parent, &name) {
        Ok(top) => top,
        Err(Errno::NOENT) => return Ok(DirRemoval::Absent),
        Err(Errno::LOOP | Errno::NOTDIR | Errno::XDEV | Errno::PERM) => {
            return Ok(DirRemoval::Replaced);
        }
        Err(error) => return Err(error.into()),
    };
    if identity(&top)? != known {
        return Ok(DirRemoval::Replaced);
    }
    for number in 0..PASSES_MAX {
        let mut pass = Pass {
            top: &top,
            number,
            kept: 0,
            names: Vec::new(),
            moved: 0,
        };
        pass.empty(&top, 0)?;
        if pass.kept > 0 && pass.moved == 0 {
            let (count, names) = (pass.kept, pass.names);
            return Ok(DirRemoval::Kept { count, names });
        }
        match unlinkat(&parent, &name, AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT) => return Ok(DirRemoval::Removed),
            // Directories were moved up, or entries were added meanwhile.
            Err(Errno::NOTEMPTY) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(Errno::NOTEMPTY.into())
}

/// Removes `parent/name` if it is an empty directory; whether it did.
///
/// # Errors
/// As openat(2).
pub fn remove_empty(parent: &Path, name: &str) -> io::Result<bool> {
    let Some(parent) = open_parent(parent)? else {
        return Ok(false);
    };
    Ok(unlinkat(&parent, name, AtFlags::REMOVEDIR).is_ok())
}

/// One walk through a tree.
struct Pass<'a> {
    top: &'a OwnedFd,
    number: usize,
    /// How many entries stay.
    kept: u64,
    /// The names of the first ones.
    names: Vec<String>,
    /// How many directories were moved up, to be emptied by the next pass.
    moved: u64,
}

impl Pass<'_> {
    fn empty(&mut self, dir: &OwnedFd, depth: usize) -> Result<(), Errno> {
        let mut entries = Dir::read_from(dir)?;
        while let Some(entry) = entries.read() {
            let entry = entry?;
            let name = entry.file_name();
            if !matches!(name.to_bytes(), b"." | b"..") {
                self.remove_entry(dir, name, depth)?;
            }
        }
        Ok(())
    }

    fn remove_entry(&mut self, dir: &OwnedFd, name: &CStr, depth: usize) -> Result<(), Errno> {
        let stat = match rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            Err(Errno::NOENT) => return Ok(()),
            Err(error) => return Err(error),
        };
        if stat.st_uid != geteuid().as_raw() {
            self.keep(name);
            return Ok(());
        }
        if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
            return self.settle(unlinkat(dir, name, AtFlags::empty()), name);
        }
        if depth == DEPTH_MAX {
            let up = format!(".ostler-removed-{}-{}", self.number, self.moved);
            self.moved += 1;
            return self.settle(renameat(dir, name, self.top, up.as_str()), name);
        }
        let before = self.kept;
        match open_listed(dir, name) {
            Ok(child) => self.empty(&child, depth + 1)?,
            refused => return self.settle(refused.map(drop), name),
        }
        if self.kept > before {
            return Ok(());
        }
        match unlinkat(dir, name, AtFlags::REMOVEDIR) {
            // The next pass removes it.
            Err(Errno::NOTEMPTY) => Ok(()),
            removed => self.settle(removed, name),
        }
    }

    /// An entry that is gone is no error; one that is mounted or protected stays.
    fn settle(&mut self, result: Result<(), Errno>, name: &CStr) -> Result<(), Errno> {
        match result {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(Errno::BUSY | Errno::XDEV | Errno::PERM | Errno::LOOP | Errno::NOTDIR) => {
                self.keep(name);
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    fn keep(&mut self, name: &CStr) {
        self.kept += 1;
        if self.names.len() < NAMED_MAX {
            self.names.push(name.to_string_lossy().into_owned());
        }
    }
}

/// The private directory, if it exists: it is not created.
fn open_parent(parent: &Path) -> io::Result<Option<OwnedFd>> {
    match std::fs::symlink_metadata(parent) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Ok(_) | Err(_) => private_dir::open(parent).map(Some),
    }
}

/// Opens a directory of this user to list it and remove its entries; where its mode denies that,
/// the mode is changed.
fn open_listed(dir: &OwnedFd, name: &CStr) -> Result<OwnedFd, Errno> {
    let opened = open_at(dir, name, OFlags::PATH)?;
    let stat = rustix::fs::fstat(&opened)?;
    if stat.st_uid != geteuid().as_raw() {
        return Err(Errno::PERM);
    }
    if Mode::from_raw_mode(stat.st_mode) & Mode::RWXU != Mode::RWXU {
        // The link leads to the opened directory, whatever has its name now (proc_pid_fd(5)).
        let link = format!("/proc/self/fd/{}", opened.as_raw_fd());
        rustix::fs::chmodat(CWD, link.as_str(), Mode::RWXU, AtFlags::empty())?;
    }
    open_at(&opened, c".", OFlags::RDONLY)
}

/// Opens a directory in `dir`, through no link and no mount.
fn open_at(dir: &OwnedFd, name: &CStr, access: OFlags) -> Result<OwnedFd, Errno> {
    let flags = access | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let resolve = ResolveFlags::NO_XDEV | ResolveFlags::NO_SYMLINKS | ResolveFlags::BENEATH;
    openat2(dir, name, flags, Mode::empty(), resolve)
}

fn identity(dir: &OwnedFd) -> Result<DirIdentity, Errno> {
    let wanted = StatxFlags::INO | StatxFlags::BTIME;
    let found = statx(dir, c"", AtFlags::EMPTY_PATH, wanted)?;
    let known = StatxFlags::from_bits_retain(found.stx_mask);
    let btime = &found.stx_btime;
    let btime_ns = btime.tv_sec * 1_000_000_000 + i64::from(btime.tv_nsec);
    Ok(DirIdentity {
        inode: found.stx_ino,
        btime_ns: known.contains(StatxFlags::BTIME).then_some(btime_ns),
    })
}

fn c_name(name: &str) -> io::Result<CString> {
    CString::new(name).map_err(|_| io::ErrorKind::InvalidInput.into())
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt as _, chown, symlink};
    use std::path::PathBuf;

    use tempfile::TempDir;

    use super::*;

    /// A private directory with `made` in it, and a file of somebody beside both.
    struct Scratch {
        root: TempDir,
        known: DirIdentity,
    }

    impl Scratch {
        fn new() -> Self {
            let root = TempDir::new().expect("a directory");
            fs::write(root.path().join("precious"), "kept").expect("written");
            let known = create(&root.path().join("parent"), "made").expect("made");
            Self { root, known }
        }

        fn parent(&self) -> PathBuf {
            self.root.path().join("parent")
        }

        fn made(&self) -> PathBuf {
            self.parent().join("made")
        }

        fn inspect(&self) -> DirPlace {
            inspect(&self.parent(), "made", self.known).expect("inspected")
        }

        fn remove(&self) -> DirRemoval {
            let removal = remove(&self.parent(), "made", self.known).expect("an answer");
            let precious = fs::read_to_string(self.root.path().join("precious"));
            assert_eq!(precious.expect("still there"), "kept");
            removal
        }
    }

    #[test]
    fn a_tree_is_removed_with_what_denies_it_and_links_are_not_followed() {
        let scratch = Scratch::new();
        assert_eq!(scratch.inspect(), DirPlace::Same);
        let deep = scratch.made().join("a/b");
        fs::create_dir_all(&deep).expect("made");
        fs::write(deep.join("file"), "").expect("written");
        symlink("../../..", scratch.made().join("up")).expect("linked");
        symlink(scratch.root.path(), deep.join("out")).expect("linked");
        fs::set_permissions(&deep, Permissions::from_mode(0o000)).expect("closed");
        assert_eq!(scratch.remove(), DirRemoval::Removed);
        assert_eq!(scratch.inspect(), DirPlace::Absent);
        assert_eq!(scratch.remove(), DirRemoval::Absent);
        assert!(scratch.parent().is_dir());
    }

    #[test]
    fn a_link_or_another_directory_in_its_place_is_left_alone() {
        let scratch = Scratch::new();
        fs::rename(scratch.made(), scratch.root.path().join("moved")).expect("moved");
        symlink(scratch.root.path(), scratch.made()).expect("linked");
        assert_eq!(scratch.inspect(), DirPlace::Replaced);
        assert_eq!(scratch.remove(), DirRemoval::Replaced);
        fs::remove_file(scratch.made()).expect("removed");
        fs::create_dir(scratch.made()).expect("made");
        fs::write(scratch.made().join("other"), "").expect("written");
        assert_eq!(scratch.remove(), DirRemoval::Replaced);
        assert!(scratch.made().join("other").exists());
        assert!(!remove_empty(&scratch.parent(), "made").expect("asked"));
    }

    #[test]
    fn a_tree_deeper_than_any_path_is_removed() {
        let scratch = Scratch::new();
        let name = "d".repeat(200);
        let mut dir = open_at(
            &private_dir::open(&scratch.parent()).expect("opened"),
            c"made",
            OFlags::PATH,
        )
        .expect("opened");
        let c_name = c_name(&name).expect("a name");
        for _ in 0..200 {
            mkdirat(&dir, name.as_str(), Mode::RWXU).expect("made");
            dir = open_at(&dir, &c_name, OFlags::PATH).expect("opened");
        }
        assert_eq!(scratch.remove(), DirRemoval::Removed);
    }

    #[test]
    fn what_belongs_to_others_is_kept() {
        if !geteuid().is_root() {
            return;
        }
        let scratch = Scratch::new();
        fs::create_dir(scratch.made().join("theirs")).expect("made");
        fs::write(scratch.made().join("theirs/file"), "").expect("written");
        fs::write(scratch.made().join("ours"), "").expect("written");
        chown(scratch.made().join("theirs"), Some(12_345), None).expect("given away");
        let names = vec!["theirs".to_owned()];
        assert_eq!(scratch.remove(), DirRemoval::Kept { count: 1, names });
        assert!(scratch.made().join("theirs/file").exists());
        assert!(!scratch.made().join("ours").exists());
    }
}
