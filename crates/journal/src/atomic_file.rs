//! Files that are replaced whole or not at all: written under a temporary name in the same
//! directory, then renamed.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, linkat, openat, renameat, unlinkat};
use rustix::io::Errno;
use rustix::rand::{GetRandomFlags, getrandom};

use crate::durability::Durability;

/// The mode of a file that only its owner reads.
pub const PRIVATE_MODE: u32 = 0o600;
/// The mode of a file whose readers the umask decides.
pub const UMASK_MODE: u32 = 0o666;

/// Random bytes in a unique temporary name.
const UNIQUE_BYTES: usize = 8;

/// A file under its temporary name. Readers see the old content until [`commit`](Self::commit);
/// without one, the temporary file is removed.
#[derive(Debug)]
pub struct AtomicFile<'a> {
    dir: BorrowedFd<'a>,
    temp_path: PathBuf,
    path: PathBuf,
    file: File,
    is_committed: bool,
}

impl AtomicFile<'static> {
    /// Begins to replace a file that has one writer at a time. The temporary name is that of the
    /// file with `.new` appended: what a crash left is overwritten by the next writer.
    ///
    /// # Errors
    /// As openat(2).
    pub fn create(path: &Path, mode: u32) -> io::Result<Self> {
        Self::create_at(CWD, path, mode)
    }

    /// Begins to replace a file that several processes may replace at once, in a directory where
    /// others may create files: the temporary name is new, and never a symbolic link.
    ///
    /// # Errors
    /// As openat(2) and getrandom(2).
    pub fn create_unique(path: &Path, mode: u32) -> io::Result<Self> {
        let mut bytes = [0_u8; UNIQUE_BYTES];
        getrandom(&mut bytes[..], GetRandomFlags::empty())?;
        let suffix = format!(".new-{:016x}", u64::from_ne_bytes(bytes));
        open_temporary(CWD, path, &suffix, OFlags::EXCL, mode)
    }
}

impl<'a> AtomicFile<'a> {
    /// As [`create`](AtomicFile::create), below a directory.
    ///
    /// # Errors
    /// As openat(2).
    pub fn create_at(dir: BorrowedFd<'a>, path: impl AsRef<Path>, mode: u32) -> io::Result<Self> {
        open_temporary(dir, path.as_ref(), ".new", OFlags::TRUNC, mode)
    }

    /// The file under its temporary name.
    #[must_use]
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Gives the file its name. After a power failure, the name may stand for the old content,
    /// the new one, or a part of it.
    ///
    /// # Errors
    /// As renameat(2).
    pub fn commit(mut self) -> io::Result<()> {
        renameat(self.dir, &self.temp_path, self.dir, &self.path)?;
        self.is_committed = true;
        Ok(())
    }

    /// Gives the file its name unless another file has it. Returns whether it did.
    ///
    /// # Errors
    /// As linkat(2).
    pub fn commit_new(self) -> io::Result<bool> {
        // The temporary name is removed when this is dropped.
        match linkat(
            self.dir,
            &self.temp_path,
            self.dir,
            &self.path,
            AtFlags::empty(),
        ) {
            Ok(()) => Ok(true),
            Err(Errno::EXIST) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Gives the file its name once its content is on disk.
    ///
    /// # Errors
    /// As fsync(2) and renameat(2).
    pub fn commit_durably(self) -> io::Result<()> {
        self.file.sync_all()?;
        self.commit()
    }

    /// Gives the file its name, with [`Durability::Fsync`] once its content is on disk.
    ///
    /// # Errors
    /// As fsync(2) and renameat(2).
    pub fn commit_with(self, durability: Durability) -> io::Result<()> {
        match durability {
            Durability::Fsync => self.commit_durably(),
            Durability::PageCache => self.commit(),
        }
    }
}

impl Write for AtomicFile<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for AtomicFile<'_> {
    fn drop(&mut self) {
        if !self.is_committed {
            // Where it cannot be removed, the error that led here matters more.
            let _leftover = unlinkat(self.dir, &self.temp_path, AtFlags::empty());
        }
    }
}

/// Replaces a file that has one writer at a time.
///
/// # Errors
/// As openat(2), write(2) and renameat(2).
pub fn replace(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let mut file = AtomicFile::create(path, mode)?;
    file.write_all(bytes)?;
    file.commit()
}

fn open_temporary<'a>(
    dir: BorrowedFd<'a>,
    path: &Path,
    suffix: &str,
    flags: OFlags,
    mode: u32,
) -> io::Result<AtomicFile<'a>> {
    let mut temp_path = OsString::from(path);
    temp_path.push(suffix);
    let temp_path = PathBuf::from(temp_path);
    let flags = flags | OFlags::WRONLY | OFlags::CREATE | OFlags::CLOEXEC;
    let file = openat(dir, &temp_path, flags, Mode::from_raw_mode(mode))?;
    Ok(AtomicFile {
        dir,
        temp_path,
        path: path.to_owned(),
        file: File::from(file),
        is_committed: false,
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::fd::AsFd;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn names(dir: &Path) -> Vec<String> {
        let entries = fs::read_dir(dir).expect("readable").flatten();
        let mut names: Vec<String> = entries
            .map(|it| it.file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_has_its_old_content_until_the_commit() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("record");
        replace(&path, b"old", PRIVATE_MODE).expect("written");
        let mut file = AtomicFile::create(&path, PRIVATE_MODE).expect("created");
        file.write_all(b"new").expect("written");
        assert_eq!(fs::read(&path).expect("readable"), b"old");
        assert_eq!(names(dir.path()), ["record", "record.new"]);
        file.commit_durably().expect("renamed");
        assert_eq!(fs::read(&path).expect("readable"), b"new");
        assert_eq!(names(dir.path()), ["record"]);
        let mode = fs::metadata(&path).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, PRIVATE_MODE);
    }

    #[test]
    fn what_is_not_committed_is_removed() {
        let dir = tempfile::tempdir().expect("a directory");
        let handle = File::open(dir.path()).expect("readable");
        drop(AtomicFile::create_at(handle.as_fd(), "a", PRIVATE_MODE).expect("created"));
        drop(AtomicFile::create_unique(&dir.path().join("b"), UMASK_MODE).expect("created"));
        assert!(names(dir.path()).is_empty());
    }

    #[test]
    fn of_two_new_files_the_first_stays() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("key");
        for (content, is_first) in [("one", true), ("other", false)] {
            let mut file = AtomicFile::create_unique(&path, PRIVATE_MODE).expect("created");
            file.write_all(content.as_bytes()).expect("written");
            assert_eq!(file.commit_new().expect("linked"), is_first);
        }
        assert_eq!(fs::read(&path).expect("readable"), b"one");
        assert_eq!(names(dir.path()), ["key"]);
    }

    #[test]
    fn what_a_crash_left_is_overwritten() {
        let dir = tempfile::tempdir().expect("a directory");
        fs::write(dir.path().join("record.new"), "a longer leftover").expect("written");
        replace(&dir.path().join("record"), b"short", UMASK_MODE).expect("written");
        assert_eq!(
            fs::read(dir.path().join("record")).expect("readable"),
            b"short"
        );
        assert_eq!(names(dir.path()), ["record"]);
    }

    #[test]
    fn writers_with_unique_names_do_not_disturb_each_other() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("script");
        let mut one = AtomicFile::create_unique(&path, UMASK_MODE).expect("created");
        let mut other = AtomicFile::create_unique(&path, UMASK_MODE).expect("created");
        one.write_all(b"one").expect("written");
        other.write_all(b"other").expect("written");
        one.commit().expect("renamed");
        assert_eq!(fs::read(&path).expect("readable"), b"one");
        other.commit().expect("renamed");
        assert_eq!(fs::read(&path).expect("readable"), b"other");
    }
}
